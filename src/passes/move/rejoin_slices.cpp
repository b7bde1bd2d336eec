// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring parts of one value that a Concat puts side by side again are one part, or the value itself. Networks that
// split their channels, work on one half and then join everything are written that way.
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"
#include "passes/slices.h"

namespace hone::passes {
namespace {

/// The Concat's operands with the first two neighbours that belong together joined; empty when there are none.
std::vector<Value*> with_neighbours_joined(Graph& graph, Node* concat, const PassContext& context) {
  const size_t axis = normalize_axis(concat->attrs.integer("axis"), concat->output()->type.shape.rank());
  for (size_t i = 0; i + 1 < concat->inputs.size(); ++i) {
    const std::optional<SlicePart> a = part_of(concat->input(i)), b = part_of(concat->input(i + 1));
    if (!a || !b || a->whole != b->whole || a->range.axis != axis || b->range.axis != axis ||
        a->range.end != b->range.begin)
      continue;
    const bool everything = a->range.begin == 0 && a->whole->type.shape[axis] == Dim(b->range.end);
    context.report_removal(concat->input(i + 1)->producer->name);
    std::vector<Value*> operands = concat->inputs;
    operands[i] = everything ? a->whole
                             : insert_slice(graph, concat, a->whole, {axis, a->range.begin, b->range.end},
                                            {concat->input(i)->producer, concat->input(i + 1)->producer})
                                   ->output();
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return operands;
  }
  return {};
}

}  // namespace

void rejoin_slices(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    if (!node->is(ops::concat)) continue;
    for (std::vector<Value*> operands = with_neighbours_joined(graph, node, context); !operands.empty();
         operands = with_neighbours_joined(graph, node, context)) {
      Node* joined = insert_for(graph, node, ops::concat, operands, node->attrs, {node});
      graph.replace(node->output(), joined->output());
      node = joined;
    }
  }
}

}  // namespace hone::passes
