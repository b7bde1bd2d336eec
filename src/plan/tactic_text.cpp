// SPDX-License-Identifier: Apache-2.0
//
// How reports and profilers name what a layer runs by: as the build's log has it, with layouts; of a plan without a log, from the step.
#include <fmt/format.h>

#include "plan/plan.h"

namespace hone {

std::string tactic_text(const Plan& plan, const Step& step) {
  for (const LayerRecord& record : plan.log)
    if (record.layer == step.name && !record.chosen.empty()) return record.chosen;
  return fmt::format("{}.{}({})", step.source, step.tactic, step.tactic_params.print());
}

}  // namespace hone
