// SPDX-License-Identifier: Apache-2.0
//
// What the families of integer convolutions share: the shape of a region, of a plan's operands, and the layouts of a tactic.
#pragma once

#include <optional>

#include "backends/cpu/family.h"
#include "backends/cpu/quant/integer_kernel.h"
#include "regions/integer_region.h"

namespace hone::cpu {

/// Nothing when the region does not begin with ConvInteger, or is refused with a reason under `family`.
std::optional<IntegerConvRegion> offered_integer_conv(const Problem& problem, const CpuInfo& info,
                                                      std::string_view family, Candidates& out);

IntegerShape integer_conv_shape(const IntegerConvRegion& region, Layout layout);
/// Throws Error where the plan's operands do not fit together.
IntegerShape integer_conv_shape(const IntegerConvCode& code, const KernelShapes& shapes);

/// One filter for each channel, along at most two axes.
bool is_depthwise(const IntegerShape& shape);

/// The input in `layout`, residual and result channels last.
Tactic integer_conv_tactic(std::string_view family, const Problem& problem, const IntegerConvRegion& region,
                           Layout layout, Attrs params);

}  // namespace hone::cpu
