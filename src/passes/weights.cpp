// SPDX-License-Identifier: Apache-2.0
//
// Weights are scaled in double precision and rounded once to their own type.
#include "passes/weights.h"

#include <algorithm>

#include "ops/ops.h"
#include "passes/edit.h"

namespace hone {
namespace {

/// Multiplies element i by scale[channel_of(i)].
template <typename ChannelOf>
Tensor scaled(const Tensor& tensor, std::span<const double> scale, ChannelOf channel_of) {
  TensorBuilder builder(tensor.dtype(), tensor.dims());
  visit(tensor.dtype(), [&]<typename T>() {
    const std::span<const T> in = tensor.data<T>();
    const std::span<T> out = builder.data<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      const double factor = scale[static_cast<size_t>(channel_of(static_cast<int64_t>(i)))];
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>)
        out[i] = T(static_cast<float>(static_cast<float>(in[i]) * factor));
      else out[i] = static_cast<T>(static_cast<double>(in[i]) * factor);
    }
  });
  return builder.finish();
}

/// The output channel of each element of a weight tensor.
struct ChannelMap {
  int64_t inner = 1, per_group = 1, outer = 0;  // channel = (i / outer) * per_group + (i / inner) % per_group
  int64_t operator()(int64_t i) const { return (outer == 0 ? 0 : i / outer * per_group) + i / inner % per_group; }
};

ChannelMap channel_map(const Node* node) {
  const Dims& dims = node->input(1)->constant->dims();
  const Channels channels = node->op->traits.channels(*node);
  return {.inner = elements(std::span(dims).subspan(channels.of_weights + 1)),
          .per_group = dims[channels.of_weights],
          .outer = channels.groups == 1 ? 0 : elements(dims) / channels.groups};
}

}  // namespace

std::optional<Weighted> weighted(Node* node) {
  if (node == nullptr || node->op->traits.channels == nullptr) return std::nullopt;
  const Value* weight = node->input(1);
  const Value* bias = node->input(2);
  if (!weight->is_constant() || !is_float(weight->type.dtype) || (bias != nullptr && !bias->is_constant()))
    return std::nullopt;
  const Shape& result = node->output()->type.shape;
  const size_t axis = node->op->traits.channels(*node).of_result;
  if (result.rank() <= axis || !result[axis].is_constant()) return std::nullopt;
  return Weighted{node, result[axis].value(), axis};
}

void fold_affine(Graph& graph, const Weighted& target, std::span<const double> scale, std::span<const double> shift) {
  Node* node = target.node;
  const Tensor& weight = *node->input(1)->constant;
  if (std::any_of(scale.begin(), scale.end(), [](double s) { return s != 1; }))
    graph.set_input(node, 1, graph.add_constant(scaled(weight, scale, channel_map(node)), node->input(1)->name));
  std::vector<double> bias = node->input(2) == nullptr ? std::vector<double>(static_cast<size_t>(target.channels), 0.0)
                                                       : numbers_of(*node->input(2)->constant);
  for (size_t c = 0; c < bias.size(); ++c) bias[c] = bias[c] * scale[c] + shift[c];
  const bool needed =
      node->input(2) != nullptr || std::any_of(bias.begin(), bias.end(), [](double b) { return b != 0; });
  if (needed) graph.set_input(node, 2, graph.add_constant(tensor_from(weight.dtype(), {target.channels}, bias)));
}

std::optional<std::vector<double>> per_channel(const Value* constant, size_t rank, size_t axis, int64_t channels) {
  if (constant == nullptr || !constant->is_constant() || !is_float(constant->type.dtype)) return std::nullopt;
  const Dims& dims = constant->constant->dims();
  if (const std::optional<double> same = splat(constant)) {
    if (dims.size() > rank) return std::nullopt;
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] != 1 && i + rank - dims.size() != axis) return std::nullopt;
    return std::vector<double>(static_cast<size_t>(channels), *same);
  }
  if (dims.size() > rank || elements(dims) != channels) return std::nullopt;
  const size_t missing = rank - dims.size();
  if (axis < missing || dims[axis - missing] != channels) return std::nullopt;
  return numbers_of(*constant->constant);
}

void absorb_affine(Graph& graph, const PassContext& context, const Weighted& target, Node* node,
                   std::span<const double> scale, std::span<const double> shift) {
  context.report_fusion(target.node->name, node->name);
  fold_affine(graph, target, scale, shift);
  const Node* parts[] = {target.node, node};
  const std::string name = joined_name(parts);
  target.node->origin.insert(target.node->origin.end(), node->origin.begin(), node->origin.end());
  target.node->name = name;
  target.node->output()->name.clear();  // what had it is not computed any more
  graph.replace(node->output(), target.node->output());
  graph.erase(node);
}

}  // namespace hone
