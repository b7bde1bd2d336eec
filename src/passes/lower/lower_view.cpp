// SPDX-License-Identifier: Apache-2.0
//
// Reshape, Flatten, Squeeze and Unsqueeze only name the same bytes differently; all become View, whose sizes are
// expressions over the input shapes, so that no shape arithmetic is left to run. Chains of views are one view.
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {

void lower_view(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes()) {
    const bool reshapes =
        node->is(ops::reshape) || node->is(ops::flatten) || node->is(ops::squeeze) || node->is(ops::unsqueeze);
    if (!reshapes || !follows_from_inputs(graph, node->output()->type.shape)) continue;
    Value* x = node->input(0);
    Node* made = insert_for(graph, node, ops::view, {x}, {{"shape", texts_of(node->output()->type.shape)}}, {node});
    made->output()->symbolic = node->output()->symbolic;
    graph.replace(node->output(), made->output());
  }
}

void merge_views(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes()) {
    if (!node->is(ops::view)) continue;
    Node* inner = producer(node->input(0), ops::view);
    if (inner == nullptr) continue;
    const std::vector<const Node*> parts{inner, node};
    Value* source = inner->input(0);
    if (source->type.shape == node->output()->type.shape && may_replace(graph, node->output(), source)) {
      graph.replace(node->output(), source);
      continue;
    }
    Node* merged = insert_for(graph, node, ops::view, {source}, node->attrs, parts);
    graph.replace(node->output(), merged->output());
  }
}

}  // namespace hone::passes
