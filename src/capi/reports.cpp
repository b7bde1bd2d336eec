// SPDX-License-Identifier: Apache-2.0
//
// What trtexec's reports say of a plan, as texts.
#include "capi/guard.h"
#include "capi/handles.h"
#include "report/layer_info.h"

using hone::capi::ArgumentError;
using hone::capi::guarded;
using hone::capi::require;
using hone::capi::require_index;

hone_status hone_plan_layers_json(const hone_plan* plan, int profile, const char** json) {
  return guarded([&] {
    require(plan, "plan");
    require(json, "json");
    if (profile < 0) throw ArgumentError(fmt::format("profile is {}", profile));
    require_index(static_cast<size_t>(profile), plan->plan->profiles.size(), "profile");
    *json = plan->kept(fmt::format("layers {}", profile),
                       [&] { return hone::layer_info_json(*plan->plan, static_cast<size_t>(profile), {}); });
  });
}
