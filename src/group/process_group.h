// SPDX-License-Identifier: Apache-2.0
//
// The group that this process is a rank of.
#pragma once

#include <memory>

#include "device/group.h"

namespace hone {

/// Joined at the first call, which waits for the others. Null where the process was started alone. Throws GroupError, and the same again
/// later, where the others do not come.
std::shared_ptr<Group> process_group();

}  // namespace hone
