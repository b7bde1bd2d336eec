// SPDX-License-Identifier: Apache-2.0
//
// A profile of a plan, by the number that a caller gives.
#pragma once

#include "capi/guard.h"
#include "capi/handles.h"

namespace hone::capi {

/// Throws ArgumentError where there is no such plan or profile.
inline const Profile& profile_of(const hone_plan* plan, int profile) {
  require(plan, "plan");
  if (profile < 0) throw ArgumentError(fmt::format("profile is {}", profile));
  require_index(static_cast<size_t>(profile), plan->plan->profiles.size(), "profile");
  return plan->plan->profiles[static_cast<size_t>(profile)];
}

}  // namespace hone::capi
