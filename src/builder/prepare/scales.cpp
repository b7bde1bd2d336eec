// SPDX-License-Identifier: Apache-2.0
#include "builder/prepare/scales.h"

#include <algorithm>

#include "ops/ops.h"
#include "ops/support.h"
#include "quantize/read_scales.h"

namespace hone {
namespace {

constexpr float kInt8Steps = 127, kLargestFp8 = 448;
constexpr int kMiddle = 128;  // of unsigned codes

bool asks_for_codes(const BuildOptions& options) {
  const auto is_coded = [](const IoFormat& format) { return format.dtype && is_code(*format.dtype); };
  const auto is_coded_layer = [](const auto& entry) {
    return entry.second.find("int8") != std::string::npos || entry.second.find("fp8") != std::string::npos;
  };
  return std::ranges::any_of(options.input_formats, is_coded) ||
         std::ranges::any_of(options.output_formats, is_coded) ||
         std::ranges::any_of(options.result_types, is_coded_layer);
}

/// One scale for the whole tensor, in codes of the type or, for i8, in unsigned ones, which are shifted.
std::optional<CodeScale> read_pair(const Node& node, DType codes, DType type) {
  const Value *scale = node.input(1), *zero = node.input(2);
  const auto is_one = [](const Value* value) { return value->is_constant() && value->constant->size() == 1; };
  const bool shifts = type == DType::i8 && codes == DType::u8;
  if ((codes != type && !shifts) || !is_one(scale) || (zero != nullptr && !is_one(zero))) return std::nullopt;
  const int at = zero == nullptr ? 0 : static_cast<int>(read_doubles(*zero->constant)[0]);
  return CodeScale{type, static_cast<float>(scale->constant->real(0)), shifts ? at - kMiddle : at};
}

/// Whether the result has elements of the first operand alone.
bool moves(const Node& node) { return node.op->hands_on(0) && node.op->traits.hands_on != HandsOn::all; }

/// Of the first QuantizeLinear that reads the value, or what only moves its elements.
std::optional<CodeScale> scale_behind(const Value& value, DType type) {
  for (const Use& use : value.uses) {
    if (use.index != 0) continue;
    std::optional<CodeScale> found;
    if (use.node->is(ops::quantize_linear)) found = read_pair(*use.node, use.node->output()->type.dtype, type);
    else if (moves(*use.node)) found = scale_behind(*use.node->output(), type);
    if (found) return found;
  }
  return std::nullopt;
}

Value* convert(Graph& graph, const OpDef& op, Value* value, const CodeScale& scale, Node* position) {
  Value* number = graph.add_constant(Tensor::scalar(scale.scale));
  Value* zero = graph.add_constant(scalar_of(scale.type, scale.zero));
  const Attrs attrs{{"axis", int64_t{1}}, {"block_size", int64_t{0}}};
  const std::string name = fmt::format("{}_{}", value->label(), op.name);
  Node* node = position != nullptr ? graph.insert(position, op, {value, number, zero}, attrs, name)
                                   : graph.add(op, {value, number, zero}, attrs, name);
  return node->output();
}

}  // namespace

TensorScales known_scales(const Graph& graph, const BuildOptions& options, const Logger& log) {
  if (!options.scales.empty() || options.calibration_file.empty()) return options.scales;
  return options.int8 || asks_for_codes(options) ? read_scales(options.calibration_file, graph, log) : TensorScales();
}

std::optional<CodeScale> model_scale(const Value& value, DType type) {
  const Value* source = &value;  // of the elements that an output hands on
  while (source->producer != nullptr && moves(*source->producer)) source = source->producer->input(0);
  if (source->producer != nullptr && source->producer->is(ops::dequantize_linear))
    return read_pair(*source->producer, source->producer->input(0)->type.dtype, type);
  return scale_behind(value, type);
}

CodeScale calibrated_scale(const TensorScale& scale, Codes codes, DType type) {
  const bool is_unsigned = codes == Codes::asymmetric;
  if (type == DType::i8) return {type, scale.scale, is_unsigned ? scale.zero - kMiddle : scale.zero};
  const float steps = is_unsigned ? static_cast<float>(std::max(scale.zero, 255 - scale.zero)) : kInt8Steps;
  return {type, scale.scale * steps / kLargestFp8, 0};
}

Value* quantized(Graph& graph, Value* real, const CodeScale& scale, Node* position) {
  return convert(graph, ops::quantize_linear, real, scale, position);
}
Value* dequantized(Graph& graph, Value* codes, const CodeScale& scale, Node* position) {
  return convert(graph, ops::dequantize_linear, codes, scale, position);
}

}  // namespace hone
