// SPDX-License-Identifier: Apache-2.0
//
// ONNX operators that are not operators here: their rules write them as several nodes. One list per domain file.
#pragma once

#include <span>

#include "ir/op.h"

namespace hone {

/// com.microsoft: fused activations, normalisations and matmuls. microsoft_fused.cpp
std::span<const OnnxRule> microsoft_fused_rules();
/// com.microsoft: attention of all kinds, with what stands around it. microsoft_attention.cpp
std::span<const OnnxRule> microsoft_attention_rules();
/// com.microsoft: operators on quantised tensors and weights. microsoft_quantized.cpp
std::span<const OnnxRule> microsoft_quantized_rules();

/// ai.onnx.preview.training: derivatives as nodes. gradient.cpp
std::span<const OnnxRule> gradient_rules();

/// For rules: operand `i`, or null when it is not given.
inline Value* given(ImportContext& context, size_t i) { return i < context.inputs() ? context.input(i) : nullptr; }
/// For rules: one node's first result.
inline Value* made(ImportContext& context, std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}) {
  return context.add(op, std::move(inputs), std::move(attrs))->output();
}
/// For rules: the value as another element type.
Value* as_type(ImportContext& context, Value* value, DType dtype);
/// For rules: a scalar of the value's element type.
Value* scalar_like(ImportContext& context, const Value* value, double number);
/// For rules: bias added when it is given.
inline Value* plus(ImportContext& context, Value* value, Value* bias) {
  return bias == nullptr ? value : made(context, "Add", {value, bias});
}

}  // namespace hone
