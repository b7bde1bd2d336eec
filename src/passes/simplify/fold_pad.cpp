// SPDX-License-Identifier: Apache-2.0
//
// A Pad with zeros before a convolution, or with minus infinity before a MaxPool, becomes part of its own padding.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

/// Pads of the spatial axes, 2 * (rank - 2) numbers in ONNX order, when the Pad has the given value and leaves batch and
/// channels alone.
std::optional<std::vector<int64_t>> spatial_pads(const Node* pad, double wanted) {
  if (pad->attrs.text("mode") != "constant" || pad->input(1) == nullptr || !pad->input(1)->is_constant())
    return std::nullopt;
  const std::optional<double> value = pad->input(2) == nullptr ? 0.0 : splat(pad->input(2));
  if (!value || *value != wanted) return std::nullopt;
  const std::vector<int64_t> given = pad->input(1)->constant->integers();
  const size_t rank = pad->output()->type.shape.rank();
  std::vector<int64_t> full(2 * rank, 0);
  if (pad->input(3) != nullptr) {
    if (!pad->input(3)->is_constant()) return std::nullopt;
    const std::vector<int64_t> axes = pad->input(3)->constant->integers();
    for (size_t i = 0; i < axes.size(); ++i) {
      const size_t axis = normalize_axis(axes[i], rank);
      full[axis] = given[i];
      full[axis + rank] = given[i + axes.size()];
    }
  } else {
    full = given;
  }
  if (full.size() != 2 * rank || std::any_of(full.begin(), full.end(), [](int64_t p) { return p < 0; }))
    return std::nullopt;
  std::vector<int64_t> spatial;
  for (size_t side = 0; side < 2; ++side)
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t amount = full[side * rank + axis];
      if (axis >= 2) spatial.push_back(amount);
      else if (amount != 0) return std::nullopt;
    }
  return spatial;
}

std::optional<double> neutral_padding(const Node* node) {
  if (node->is(ops::conv)) return 0.0;
  if (node->is(ops::max_pool)) return -std::numeric_limits<double>::infinity();
  if (node->is(ops::average_pool) && node->attrs.integer("count_include_pad") != 0) return 0.0;
  return std::nullopt;
}

}  // namespace

void fold_pad(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    const std::optional<double> neutral = neutral_padding(node);
    if (!neutral || node->attrs.text("auto_pad") != "NOTSET") continue;
    const Node* pad = sole_producer(graph, node->input(0), ops::pad);
    if (pad == nullptr) continue;
    const std::optional<std::vector<int64_t>> extra = spatial_pads(pad, *neutral);
    if (!extra) continue;
    const TensorType before = node->output()->type;
    Attrs attrs = node->attrs;
    std::vector<int64_t> pads = attrs.integers("pads");
    if (pads.size() != extra->size()) continue;
    for (size_t i = 0; i < pads.size(); ++i) pads[i] += (*extra)[i];
    attrs.set("pads", std::move(pads));
    std::vector<Value*> inputs = node->inputs;
    inputs[0] = pad->input(0);
    Node* merged =
        insert_for(graph, node, *node->op, std::move(inputs), std::move(attrs), {pad, node}, node->outputs.size());
    if (merged->output()->type != before) {  // ceil_mode counts padding differently
      graph.erase(merged);
      continue;
    }
    context.report_fusion(pad->name, node->name);
    for (size_t i = 0; i < node->outputs.size(); ++i) graph.replace(node->outputs[i], merged->outputs[i]);
  }
}

}  // namespace hone::passes
