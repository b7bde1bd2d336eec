// SPDX-License-Identifier: Apache-2.0
//
// --explain: every candidate of every layer, its time or why it was refused, from the log that the plan keeps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace hone {

/// Lines about all layers, or about those whose name contains `layer`. Throws Error naming the layers when none does.
std::vector<std::string> explain_lines(const Plan& plan, std::string_view layer);

}  // namespace hone
