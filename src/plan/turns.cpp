// SPDX-License-Identifier: Apache-2.0
#include "plan/turns.h"

namespace hone {

size_t turns_end(const std::vector<Step>& steps, size_t first) {
  size_t end = first + 1;
  const auto follows = [&] { return steps[end].by_entry && steps[end].stage == steps[first].stage; };
  while (steps[first].by_entry && end < steps.size() && follows()) ++end;
  return end;
}

BufferId entry_of(const Profile& profile, BufferId id) {
  while (id >= 0 && !profile.buffers[static_cast<size_t>(id)].entry)
    id = profile.buffers[static_cast<size_t>(id)].alias;
  return id;
}

std::vector<BufferId> entries_in(const Profile& profile, size_t begin, size_t end) {
  std::vector<BufferId> entries;
  for (size_t s = begin; s < end; ++s)
    for (const auto* list : {&profile.steps[s].inputs, &profile.steps[s].outputs})
      for (const BufferId id : *list)
        if (const BufferId entry = entry_of(profile, id); entry >= 0) entries.push_back(entry);
  return entries;
}

}  // namespace hone
