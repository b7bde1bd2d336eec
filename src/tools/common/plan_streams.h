// SPDX-License-Identifier: Apache-2.0
//
// What `hone bench --throughput` left in a plan, as tools that feed engines follow it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "options/tool_options.h"
#include "tools/common/plan_view.h"

namespace hone {

/// The inputs whose first size is open, where that is one size of all of them: what queries can have several rows of. Else none.
std::vector<std::string> inputs_with_rows(std::span<const NetworkTensor> tensors);

struct FollowedPlan {
  std::optional<hone_throughput> taken;
  PlanFile file;  // what was read for it, for the session
};

/// Where the plan says how many streams suit it and the command line does not: --infStreams and, for want of --shapes, the rows of a query
/// become the plan's. A file that cannot be read is left for those who need it.
FollowedPlan follow_plan(Options& options);

}  // namespace hone
