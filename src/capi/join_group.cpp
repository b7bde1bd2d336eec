// SPDX-License-Identifier: Apache-2.0
//
// From a plan that is divided to the group of this process.
#include "capi/load.h"
#include "group/process_group.h"
#include "runtime/ranks.h"

namespace hone::capi {

void join_group(const Plan& plan, Device& device) {
  auto* member = is_divided(plan) ? dynamic_cast<HasGroup*>(&device) : nullptr;
  if (member != nullptr && !member->group()) member->join(process_group());
}

}  // namespace hone::capi
