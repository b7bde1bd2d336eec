// SPDX-License-Identifier: Apache-2.0
#include "quantize/fold_weights.h"

#include <algorithm>

#include "ir/op.h"
#include "ops/ops.h"

namespace hone {
namespace {

bool moves_weights(const Graph& graph, const Node& node) {
  const bool moves = node.is(ops::reshape) || node.is(ops::transpose) || node.is(ops::identity) ||
                     node.is(ops::flatten) || node.is(ops::squeeze) || node.is(ops::unsqueeze);
  return moves && node.output()->type.dtype == DType::f32 && !graph.is_output(node.output()) &&
         std::ranges::all_of(node.inputs, [](const Value* input) { return input == nullptr || input->is_constant(); });
}

}  // namespace

void fold_weights(Graph& graph) {
  for (Node* node : graph.nodes()) {
    if (!moves_weights(graph, *node)) continue;
    std::vector<const Tensor*> operands;
    for (const Value* input : node->inputs) operands.push_back(input == nullptr ? nullptr : &*input->constant);
    const std::string name = node->output()->name;
    Value* folded = graph.add_constant(evaluate_node(*node, operands).front());
    graph.replace(node->output(), folded);
    graph.erase(node);
    folded->name = name;
  }
}

}  // namespace hone
