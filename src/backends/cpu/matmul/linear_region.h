// SPDX-License-Identifier: Apache-2.0
//
// What the families of products with constant weights share: reading the region, what load() needs of it, checking a plan's.
#pragma once

#include <optional>

#include "backends/cpu/conv/convolution.h"

namespace hone::cpu {

struct LinearRegion {
  RegionMatch match;
  int input = -1;
  int64_t n = 0, k = 0;
  bool transposed = false;  // weights are [N, K]
};

/// Nothing when the region is not about Linear, or refused with a reason under `family`.
std::optional<LinearRegion> read_linear_region(const Problem& problem, std::string_view family, Candidates& out);
/// The same when the tactic has been offered already.
LinearRegion linear_region(const Problem& problem);

/// All operands and the result linear.
Tactic linear_tactic(std::string_view family, const Problem& problem, Attrs params);
/// The second half of every family's compile(): `weights` packed by the caller, then the bias in panels, and the code with the
/// tactic's parameters, sizes, operands, epilogue and the instruction set.
Compiled finish_linear(std::string_view family, const Problem& problem, const LinearRegion& region,
                       const Tactic& tactic, Tensor weights, int64_t panel);
/// Throws Error when the plan's sizes contradict each other.
void check_linear(const Attrs& attrs, const KernelShapes& shapes);

}  // namespace hone::cpu
