// SPDX-License-Identifier: Apache-2.0
//
// Shapes from the command line, brought together with what the model or the plan has: unknown names, static
// inputs, and the sizes that nobody gave.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "options/tool_options.h"
#include "tools/common/plan_view.h"

namespace hone {

/// Profiles for all inputs with dynamic sizes, and only those. Sizes named nowhere become 1, with a warning.
std::vector<ProfileOptions> model_profiles(std::span<const NetworkTensor> model,
                                           const std::vector<ProfileOptions>& asked, const NamedTexts& typed,
                                           const Logger& log);

/// Shapes of the dynamic inputs of a plan to run with; `built`: the profile's opt is what was asked for.
InputShapes engine_shapes(std::span<const NetworkTensor> engine, const PlanProfile& profile, const ShapeMap& asked,
                          const NamedTexts& typed, bool built, const Logger& log);

}  // namespace hone
