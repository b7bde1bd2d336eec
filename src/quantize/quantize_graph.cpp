// SPDX-License-Identifier: Apache-2.0
#include "quantize/quantize_graph.h"

#include <algorithm>

#include "ops/ops.h"

namespace hone {
namespace {

Value* dequantized(Graph& graph, Node* position, std::vector<Value*> operands, int64_t axis, const Value& real,
                   const std::vector<std::string>& origin) {
  const Attrs attrs{{"axis", axis}, {"block_size", int64_t{0}}};
  Node* node =
      graph.insert(position, ops::dequantize_linear, std::move(operands), attrs, real.name + "_DequantizeLinear");
  node->origin = origin;
  node->output()->name = node->name;
  return node->output();
}

/// The use that comes first in the graph.
Node* first_of(const Graph& graph, const std::vector<Use>& uses) {
  for (Node* node : graph.nodes())
    if (std::ranges::any_of(uses, [&](const Use& use) { return use.node == node; })) return node;
  throw InternalError("a use of another graph");
}

void read_instead(Graph& graph, const std::vector<Use>& uses, Value* value) {
  for (const Use& use : uses) graph.set_input(use.node, use.index, value);
}

void quantize_tensor(Graph& graph, const PlacedTensor& tensor, const TensorScale& number, Codes codes) {
  Node* position = first_of(graph, tensor.uses);
  Value *scale = graph.add_constant(Tensor::scalar(number.scale)),
        *zero = graph.add_constant(zero_point(codes, number.zero));
  const Node* producer = tensor.value->producer;
  const Attrs attrs{{"axis", int64_t{1}}, {"block_size", int64_t{0}}};
  Node* quantize = graph.insert(position, ops::quantize_linear, {tensor.value, scale, zero}, attrs,
                                tensor.value->name + "_QuantizeLinear");
  quantize->origin = producer == nullptr ? position->origin : producer->origin;
  quantize->output()->name = quantize->name;
  read_instead(graph, tensor.uses,
               dequantized(graph, position, {quantize->output(), scale, zero}, 1, *tensor.value, position->origin));
}

void quantize_weight(Graph& graph, const PlacedWeights& weights, Codes codes_of_tensors) {
  const ChannelWeights integers =
      with_note([&] { return "quantising the weights " + weights.value->label(); },
                [&] { return quantize_weights(*weights.value->constant, weights.axis, codes_of_tensors); });
  Node* position = first_of(graph, weights.uses);
  Value *codes = graph.add_constant(integers.codes, weights.value->name + "_quantized"),
        *scales = graph.add_constant(integers.scales);
  read_instead(graph, weights.uses,
               dequantized(graph, position, {codes, scales}, weights.axis, *weights.value, position->origin));
}

}  // namespace

void quantize_graph(Graph& graph, const Placement& placement, const TensorScales& scales, Codes codes) {
  for (const PlacedTensor& tensor : placement.tensors)
    quantize_tensor(graph, tensor, scales.at(tensor.value->name), codes);
  for (const PlacedWeights& weights : placement.weights) quantize_weight(graph, weights, codes);
}

}  // namespace hone
