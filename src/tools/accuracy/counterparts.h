// SPDX-License-Identifier: Apache-2.0
//
// Which tensor of a network in floating point a tensor of a quantised one stands for, and how the one becomes the other.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tensor/scale.h"

namespace hone {

struct Counterpart {
  std::string tensor;                // in floating point
  std::optional<TensorScale> scale;  // of integers; none: the values are the tensor's own
};

/// By the name of the tensor, for all that the nodes make. Tensors that are quantised by channels or blocks have none.
std::map<std::string, Counterpart, std::less<>> counterparts_in(const Graph& graph);

/// What a type can hold.
struct TypeLimits {
  double low = 0, high = 0;
  double least = 0;  // magnitudes below become 0, or lose most of their digits
};
/// None for types that hold no real numbers.
std::optional<TypeLimits> limits_of(DType type, const std::optional<TensorScale>& scale);

/// A tensor's real values; none for types that hold no real numbers, integers without a scale among them.
std::optional<std::vector<float>> real_values(const Tensor& tensor, const std::optional<TensorScale>& scale);
/// The nearest tensor of a type that real_values() reads.
Tensor rounded(std::span<const float> values, DType type, const Dims& dims, const std::optional<TensorScale>& scale);

}  // namespace hone
