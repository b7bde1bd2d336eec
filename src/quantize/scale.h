// SPDX-License-Identifier: Apache-2.0
//
// Scales of activations, and weights as integers.
#pragma once

#include <functional>

#include "quantize/placement.h"
#include "tensor/scale.h"
#include "tensor/tensor.h"

namespace hone {

/// The values that a tensor may have; those beyond are clipped.
struct ClippedRange {
  float low = 0, high = 0;
};

/// The magnitude that symmetric codes reach.
float largest_code(Codes codes);

/// The scale under which the range fits; a range that is nothing but 0 has the scale 1.
TensorScale scale_of(const ClippedRange& range, Codes codes);

/// A scale for each tensor of the placement by its name, the same for tensors of one group. `range` is asked once a tensor.
TensorScales scales_of(const Placement& placement, Codes codes,
                       const std::function<ClippedRange(const PlacedTensor&)>& range);
/// Of the scales that are given: for each group the largest.
TensorScales united_scales(const Placement& placement, const TensorScales& given);

/// The operand of QuantizeLinear and DequantizeLinear, whose type says that of the codes.
Tensor zero_point(Codes codes, int zero);

/// Weights in 8 bits with symmetric scales, one for each index of `axis`. Rounded half to even.
struct ChannelWeights {
  Tensor codes, scales;  // i8 or f8e4m3fn; f32[channels]
};
/// Asymmetric codes are of activations: weights beside them are symmetric. Throws Error when a weight is not finite.
ChannelWeights quantize_weights(const Tensor& weights, int64_t axis, Codes codes);
/// The weights that the codes stand for.
Tensor dequantized(const ChannelWeights& weights, int64_t axis);

}  // namespace hone
