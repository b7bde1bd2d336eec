// SPDX-License-Identifier: Apache-2.0
//
// ConstantOfShape is one number, repeated: an Expand, which every device copies, and which what broadcasts can do without.
#include "ops/ops.h"
#include "passes/passes.h"

namespace hone::passes {

void lower_fill(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes()) {
    if (!node->is(ops::constant_of_shape) || node->input(0)->symbolic == nullptr) continue;
    const Tensor number = node->attrs.has("value") ? node->attrs.tensor("value") : Tensor::scalar(0.0f);
    if (is_object(number.dtype())) continue;
    Value* repeated = graph.add_constant(Tensor(number.dtype(), {}, number.blob()));
    Node* made = graph.insert(node, ops::expand, {repeated, node->input(0)}, {}, node->name);
    made->origin = node->origin;
    made->output()->symbolic = node->output()->symbolic;
    graph.replace(node->output(), made->output());
  }
}

}  // namespace hone::passes
