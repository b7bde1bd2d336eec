// SPDX-License-Identifier: Apache-2.0
//
// An If whose condition is known becomes the branch that it takes.
#include <unordered_map>

#include "ir/op.h"
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

/// Copies a body's nodes before `position`; its inputs stand for `arguments`. Returns the body's results.
std::vector<Value*> inline_body(Graph& graph, Node* position, const Graph& body, std::span<Value* const> arguments) {
  std::unordered_map<const Value*, Value*> map;
  for (size_t i = 0; i < body.inputs().size(); ++i) map[body.inputs()[i]] = arguments[i];
  const auto copy_of = [&](const Value* value) -> Value* {
    if (value == nullptr) return nullptr;
    Value*& made = map[value];
    if (made == nullptr) made = graph.add_constant(*value->constant, value->name);
    return made;
  };
  for (const Node* node : body.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* input : node->inputs) inputs.push_back(copy_of(input));
    Node* made = graph.insert(position, *node->op, std::move(inputs), node->attrs, node->name, node->outputs.size());
    made->origin = node->origin;
    for (size_t i = 0; i < node->outputs.size(); ++i) map[node->outputs[i]] = made->outputs[i];
  }
  std::vector<Value*> results;
  for (const Value* output : body.outputs()) results.push_back(copy_of(output));
  return results;
}

bool has_nested_bodies(const Graph& body) {
  for (const Node* node : body.nodes())
    if (!node->bodies.empty()) return true;
  return false;
}

}  // namespace

void fold_if(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    if (!node->is(ops::if_)) continue;
    const std::optional<double> condition = splat(node->input(0));
    if (!condition) continue;
    // Bodies stand in order of the attributes' names: else_branch, then_branch.
    const Graph& body = *node->bodies[*condition != 0 ? 1 : 0];
    const std::span<Value* const> arguments = std::span(node->inputs).subspan(1);
    if (arguments.size() != body.inputs().size() || has_nested_bodies(body)) continue;
    const std::vector<Value*> results = inline_body(graph, node, body, arguments);
    context.report_removal(node->name);
    for (size_t i = 0; i < node->outputs.size(); ++i) graph.replace(node->outputs[i], results[i]);
    graph.erase_dead();
    graph.infer_all();
  }
}

}  // namespace hone::passes
