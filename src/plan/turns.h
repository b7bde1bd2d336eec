// SPDX-License-Identifier: Apache-2.0
//
// Steps that go by entry: neighbours take turns, and see one entry of a batch in each round.
#pragma once

#include "plan/plan.h"

namespace hone {

/// A larger batch goes as a whole: each round has launches of its own.
constexpr int64_t kMostRounds = 1024;

/// The end of the neighbours that take turns with steps[first]; of a step that does not, it ends behind itself.
size_t turns_end(const std::vector<Step>& steps, size_t first);

/// The entry that a buffer is or lies in; -1 where it is none.
BufferId entry_of(const Profile& profile, BufferId id);

/// The batch that an entry is of.
inline BufferId batch_of(const Profile& profile, BufferId entry) {
  return profile.buffers[static_cast<size_t>(entry)].alias;
}

/// Those that the steps [begin, end) read or write, perhaps more than once.
std::vector<BufferId> entries_in(const Profile& profile, size_t begin, size_t end);

}  // namespace hone
