// SPDX-License-Identifier: Apache-2.0
//
// A DequantizeLinear for each reader that can take it into its own loop: reading a byte and scaling it there costs less than
// reading the f32 that another kernel has written. Other readers share one.
#include <algorithm>
#include <map>

#include "ir/op.h"
#include "ops/byte_scale.h"
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

bool takes_in(const Node& reader) {
  return reader.op->is_pointwise() || reader.is(ops::global_average_pool) || reader.is(ops::reduce_mean) ||
         reader.is(ops::softmax) || reader.is(ops::layer_normalization) || reader.is(ops::rms_normalization) ||
         (reader.is(ops::quantize_linear) && byte_scale(reader));
}

void repeat(Graph& graph, Node* node) {
  const std::vector<Use> uses = node->output()->uses;
  const bool is_shared = graph.is_output(node->output()) ||
                         !std::all_of(uses.begin(), uses.end(), [](const Use& use) { return takes_in(*use.node); });
  const Node* owner = is_shared || uses.empty() ? nullptr : uses[0].node;
  std::map<Node*, Value*> copies;
  for (const Use& use : uses) {
    if (use.node == owner || !takes_in(*use.node)) continue;
    Value*& copy = copies[use.node];
    if (copy == nullptr)
      copy = insert_for(graph, use.node, ops::dequantize_linear, node->inputs, node->attrs, {node})->output();
    graph.set_input(use.node, use.index, copy);
  }
}

}  // namespace

void repeat_dequantize(Graph& graph, const PassContext& context) {
  if (!context.byte_matmuls) return;
  for (Node* node : graph.nodes())
    if (node->is(ops::dequantize_linear) && byte_scale(*node)) repeat(graph, node);
}

}  // namespace hone::passes
