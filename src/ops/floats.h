// SPDX-License-Identifier: Apache-2.0
//
// Helpers shared by operator files: reading floats of any kind, writing them back, attribute defaults of rules.
#pragma once

#include <vector>

#include "ir/op.h"

namespace hone::ops {

/// All elements as floats; f32 tensors are not copied.
class FloatView {
 public:
  explicit FloatView(const Tensor& tensor);
  const float* data() const { return data_; }
  float operator[](int64_t i) const { return data_[i]; }

 private:
  std::vector<float> copy_;
  const float* data_;
};

/// Floats back to a tensor of a float kind.
Tensor from_floats(DType dtype, Dims dims, std::span<const float> values);
/// dims split at `axis`: the product before it, its size, the product behind it.
struct AxisSplit {
  int64_t outer, size, inner;
};
AxisSplit split_at(const Dims& dims, size_t axis);
void require_float(const InferContext& context, size_t operand);

}  // namespace hone::ops
