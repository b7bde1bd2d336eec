// SPDX-License-Identifier: Apache-2.0
//
// Helpers shared by operator files.
#include "ops/floats.h"

namespace hone::ops {

FloatView::FloatView(const Tensor& tensor) {
  if (tensor.dtype() == DType::f32) {
    data_ = tensor.data<float>().data();
    return;
  }
  copy_.resize(static_cast<size_t>(tensor.size()));
  for (size_t i = 0; i < copy_.size(); ++i) copy_[i] = static_cast<float>(tensor.real(static_cast<int64_t>(i)));
  data_ = copy_.data();
}

Tensor from_floats(DType dtype, Dims dims, std::span<const float> values) {
  TensorBuilder builder(dtype, std::move(dims));
  visit(dtype, [&]<typename T>() {
    std::span<T> out = builder.data<T>();
    for (size_t i = 0; i < out.size(); ++i) out[i] = T(values[i]);
  });
  return builder.finish();
}

AxisSplit split_at(const Dims& dims, size_t axis) {
  const std::span<const int64_t> all(dims);
  return {elements(all.first(axis)), dims[axis], elements(all.subspan(axis + 1))};
}

void require_float(const InferContext& context, size_t operand) {
  HONE_CHECK(is_float(context.dtype(operand)), "operand {} of {} is {}, a float kind is needed", operand, context.node().op->name, name_of(context.dtype(operand)));
}

}  // namespace hone::ops
