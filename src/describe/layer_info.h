// SPDX-License-Identifier: Apache-2.0
//
// What the layers of an engine are: --dumpLayerInfo and --exportLayerInfo. How much is told was decided by the build's
// profiling verbosity: names, everything, or nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace hone {

/// The values of a plan's symbols at these shapes of inputs; what does not follow from them is left out.
SymbolValues symbols_at(const Plan& plan, const std::map<std::string, Dims>& input_shapes);

/// Sizes that depend on symbols without value print as -1.
std::string layer_info_json(const Plan& plan, size_t profile, const SymbolValues& symbols);
/// All of it, whatever the build's verbosity: for reports that a user makes of a plan at hand.
std::string detailed_layer_info_json(const Plan& plan, size_t profile, const SymbolValues& symbols);
/// One entry per log line, bindings included.
std::vector<std::string> layer_info_lines(const Plan& plan, size_t profile, const SymbolValues& symbols);

}  // namespace hone
