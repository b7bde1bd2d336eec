// SPDX-License-Identifier: Apache-2.0
//
// What codes of four bits stand for where they are no integers: ONNX's float4e2m1, and bitsandbytes' FP4 and NF4, the quantiles of a
// normal distribution, which com.microsoft's MatMulBnb4 names by numbers.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace hone {

/// "e2m1", "fp4" or "nf4"; throws on other names.
std::span<const float, 16> code_table(std::string_view name);

/// [K, N], as DequantizeLinear gives them: weights of codes, places in `table` unless that is empty, with a scale and perhaps a zero
/// point (null: none) for every `block` rows of a column.
std::vector<float> dequantized_weights(const Tensor& codes, const Tensor& scales, const Tensor* zeros, int64_t block,
                                       std::string_view table);

}  // namespace hone
