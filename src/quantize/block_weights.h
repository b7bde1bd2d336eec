// SPDX-License-Identifier: Apache-2.0
//
// Matrices of weights in 4 bits, with a scale for each block along the axis that a product sums over.
#pragma once

#include <optional>
#include <span>

#include "tensor/scale.h"
#include "tensor/tensor.h"

namespace hone {

struct BlockRules {
  int64_t block = 128;  // the last one may be shorter
  Codes codes = Codes::symmetric;
  /// For each index of the axis, what its squared error counts (the mean square of what it is multiplied by). Where it is given,
  /// smaller scales are tried too, which clip, and the one with the least error is taken.
  std::span<const float> importance = {};
  /// InputMoments::feedback(): errors are made good by the weights behind them.
  std::span<const float> feedback = {};
};

struct BlockWeights {
  Tensor codes, scales;         // i4 or u4, of the weights' shape; f32, blocks along the axis
  std::optional<Tensor> zeros;  // of asymmetric codes, as the scales
};

/// Symmetric codes go from -8 to 7, with scales such that the largest weight of a block is 7; asymmetric ones from 0 to 15. `axis` is 0
/// or 1 of a matrix. Rounded half to even. Throws Error when a weight is not finite.
BlockWeights quantize_blocks(const Tensor& weights, int64_t axis, const BlockRules& rules);

}  // namespace hone
