// SPDX-License-Identifier: Apache-2.0
//
// Weights that were quantised and are floats again, seen for what they are: numbers of 8 bits, whole (i8) or E4M3, times one scale for
// each channel.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace hone {

struct Node;

/// Codes along the inner axis that tensor cores read at once: products of other depths stay floats.
inline constexpr int64_t kCodesAtOnce = 16;

/// A weight of channel c is what its code stands for times scales[c].
struct WeightCodes {
  std::vector<int8_t> codes;  // in the order of the weights; bits of E4M3
  std::vector<float> scales;
};

/// Null where some channel has no such scale, as far as the weights tell: those in bf16 say nothing of whole numbers.
std::shared_ptr<const WeightCodes> weight_codes(const Tensor& weights, size_t channel_axis, DType codes);

/// While one of these lives, what was found of weights is kept: passes, tuner and every offer of a build ask the same.
class KeptWeightCodes {
 public:
  KeptWeightCodes();

 private:
  std::shared_ptr<void> found_;
};

/// Encode, or the same of E4M3.
bool makes_codes(const Node& node);

/// Whether a convolution or matmul of codes says the same as this one: its weights are codes, too, and it has one group, whole pieces of
/// channels and padding that no size decides.
bool multiplies_codes(const Node& node, DType codes);

}  // namespace hone
