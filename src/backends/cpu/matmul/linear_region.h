// SPDX-License-Identifier: Apache-2.0
//
// What the families of matmuls with constant weights share besides the region itself (regions/matmul_region.h).
#pragma once

#include <optional>

#include "backends/cpu/conv/convolution.h"
#include "regions/matmul_region.h"

namespace hone::cpu {

/// Nothing when the region is not about Linear, or refused with a reason under `family`.
std::optional<LinearRegion> offered_linear_region(const Problem& problem, std::string_view family, Candidates& out);
/// All operands and the result linear.
Tactic linear_tactic(std::string_view family, const Problem& problem, Attrs params);

}  // namespace hone::cpu
