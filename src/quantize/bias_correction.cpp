// SPDX-License-Identifier: Apache-2.0
#include "quantize/bias_correction.h"

#include "ops/ops.h"
#include "ops/support.h"
#include "quantize/channel_edits.h"

namespace hone {
namespace {

const Attrs kPerTensor{{"axis", int64_t{1}}, {"block_size", int64_t{0}}};

Value* rounded_tensor(Graph& graph, Node* position, Value* value, const TensorScale& number, Codes codes) {
  Value *scale = graph.add_constant(Tensor::scalar(number.scale)),
        *zero = graph.add_constant(zero_point(codes, number.zero));
  Node* quantize = graph.insert(position, ops::quantize_linear, {value, scale, zero}, kPerTensor);
  return graph.insert(position, ops::dequantize_linear, {quantize->output(), scale, zero}, kPerTensor)->output();
}

bool is_own(const Value* value, size_t channels) {
  return value != nullptr && value->is_constant() && value->uses.size() == 1 &&
         static_cast<size_t>(elements(value->constant->dims())) == channels;
}

/// The constant that takes what is added to a product's result; null where it has none of its own.
const Value* bias_of(const Node& node, size_t channels) {
  if (!node.is(ops::mat_mul)) return is_own(node.input(2), channels) ? node.input(2) : nullptr;
  const Value& result = *node.output();
  if (result.uses.size() != 1 || !result.uses.front().node->is(ops::add)) return nullptr;
  const Value* other = result.uses.front().node->input(1 - result.uses.front().index);
  return is_own(other, channels) ? other : nullptr;
}

}  // namespace

std::vector<ShadowProduct> add_shadow_products(Graph& graph, const Placement& placement, const TensorScales& scales,
                                               Codes codes) {
  std::vector<ShadowProduct> shadows;
  for (const PlacedWeights& weights : placement.weights) {
    const Tensor rounded = dequantized(quantize_weights(*weights.value->constant, weights.axis, codes), weights.axis);
    Value* constant = graph.add_constant(rounded);
    for (const Use& use : weights.uses) {
      Node* node = use.node;
      const auto scale = scales.find(node->input(0)->name);
      if (scale == scales.end()) continue;
      std::vector<Value*> operands = node->inputs;
      operands[0] = rounded_tensor(graph, node, operands[0], scale->second, codes);
      operands[1] = constant;
      Node* shadow = graph.insert(node, *node->op, operands, node->attrs, node->output()->name + "_rounded");
      shadow->output()->name = graph.unique_name(shadow->name);
      const size_t axis = node->is(ops::conv) ? 1 : node->output()->type.shape.rank() - 1;
      shadows.push_back({node->output()->name, shadow->output()->name, axis,
                         static_cast<size_t>(weights.value->constant->dims()[static_cast<size_t>(weights.axis)])});
    }
  }
  return shadows;
}

void ChannelMeans::add(const Dims& dims, std::span<const float> values) {
  const AxisView channels(dims, axis_);
  size_t at = 0;
  for (int64_t o = 0; o < channels.outer; ++o)
    for (double& sum : sums_)
      for (int64_t i = 0; i < channels.inner; ++i) sum += values[at++];
  count_ += static_cast<uint64_t>(channels.outer * channels.inner);
}

CorrectedBiases corrected_biases(const Graph& graph,
                                 const std::map<std::string, std::vector<float>, std::less<>>& shifts) {
  EditedConstants constants;
  CorrectedBiases result;
  for (const Node* node : graph.nodes()) {
    if (node->outputs.empty()) continue;
    const auto shift = shifts.find(node->output()->name);
    if (shift == shifts.end()) continue;
    const std::vector<float>& values = shift->second;
    if (const Value* bias = bias_of(*node, values.size()); bias != nullptr) {
      constants.add(*bias, values);
    } else if (!node->is(ops::mat_mul) && node->input(2) == nullptr) {
      result.edits.biases.emplace(node->output()->name,
                                  Tensor::of<float>({static_cast<int64_t>(values.size())}, values));
    } else {
      continue;
    }
    ++result.products;
  }
  result.edits.constants = constants.edits().constants;
  return result;
}

}  // namespace hone
