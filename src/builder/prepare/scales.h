// SPDX-License-Identifier: Apache-2.0
//
// Scales of tensors that are stored in 8 bits: where they come from, and the nodes that bring a tensor to codes and back.
#pragma once

#include <optional>

#include "base/log.h"
#include "builder/options.h"
#include "ir/graph.h"

namespace hone {

/// A tensor in i8 or f8e4m3fn: real = (code - zero) * scale.
struct CodeScale {
  DType type = DType::i8;
  float scale = 1;
  int zero = 0;
};
constexpr bool is_code(DType type) { return type == DType::i8 || type == DType::f8e4m3fn; }

/// Those that the options hold, else those of the calibration file where something asks for 8 bits. Throws Error for a file that does
/// not fit the graph.
TensorScales known_scales(const Graph& graph, const BuildOptions& options, const Logger& log);

/// What the model itself says: of the QuantizeLinear behind an input, or the DequantizeLinear that makes an output. One scale each.
std::optional<CodeScale> model_scale(const Value& value, DType type);
/// Of a calibrated range.
CodeScale calibrated_scale(const TensorScale& scale, Codes codes, DType type);

/// QuantizeLinear and DequantizeLinear, before `position` or at the end.
Value* quantized(Graph& graph, Value* real, const CodeScale& scale, Node* position);
Value* dequantized(Graph& graph, Value* codes, const CodeScale& scale, Node* position);

}  // namespace hone
