// SPDX-License-Identifier: Apache-2.0
//
// An If whose condition is known becomes the branch that it takes. So does one that only asks whether a tensor is empty, and then
// returns nothing, where the other branch makes nothing of nothing as well: what exporters write around NonMaxSuppression.
#include <algorithm>
#include <map>
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

/// The size whose being zero a condition asks for; nothing where it asks for anything else.
std::optional<Dim> asked_to_be_zero(const Value* condition) {
  const Node* equal = producer(condition, ops::equal);
  if (equal == nullptr) return std::nullopt;
  for (const size_t i : {0, 1}) {
    const Value* size = equal->input(i);
    if (is_splat(equal->input(1 - i), 0) && size->symbolic != nullptr && size->symbolic->size() == 1)
      return size->symbolic->front();
  }
  return std::nullopt;
}

/// The sizes that are zero exactly where a number of elements is: the only open size of an operand that has so many.
std::vector<Dim> zero_with(const Dim& count, const Node& node) {
  std::vector<Dim> sizes{count};
  for (const Value* operand : node.inputs) {
    if (operand == nullptr || !operand->type.ranked || operand->type.shape.elements() != count) continue;
    const std::vector<Dim>& dims = operand->type.shape.dims();
    const auto open = [](const Dim& dim) { return !dim.is_constant(); };
    if (std::ranges::count_if(dims, open) == 1) sizes.push_back(*std::ranges::find_if(dims, open));
  }
  return sizes;
}

/// Whether a body's result has no elements where these sizes are zero: one of its sizes, or the most that it can be, is not above
/// one of them.
bool vanishes_with(const std::vector<Dim>& sizes, const Graph& body, const Value& result) {
  const std::map<std::string, const Node*> deciders = body.size_deciders();
  const auto most = [&](const Dim& dim) {
    const auto decider = deciders.find(dim.text());
    if (decider == deciders.end() || decider->second->op->traits.most == nullptr) return dim;
    const std::vector<Dim>& decided = decider->second->output()->type.shape.dims();
    const auto axis = std::ranges::find(decided, dim) - decided.begin();
    return decider->second->op->traits.most(*decider->second)[static_cast<size_t>(axis)];
  };
  const auto within = [&](const Dim& dim) {
    return std::ranges::any_of(sizes, [&](const Dim& size) { return minimum(dim, size) == dim; });
  };
  return result.type.ranked &&
         std::ranges::any_of(result.type.shape.dims(), [&](const Dim& dim) { return within(most(dim)); });
}

/// Whether an If may take its else branch always: it takes the other one where a tensor is empty, and either returns nothing then.
bool asks_for_nothing(const Node& node) {
  const std::optional<Dim> count = asked_to_be_zero(node.input(0));
  if (!count) return false;
  const std::vector<Dim> sizes = zero_with(*count, node);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Value &taken = *node.bodies[0]->outputs()[i], &empty = *node.bodies[1]->outputs()[i];
    if (!empty.is_constant() || empty.constant->size() != 0 || empty.type.dtype != taken.type.dtype) return false;
    if (empty.type.shape.rank() != taken.type.shape.rank() || !vanishes_with(sizes, *node.bodies[0], taken))
      return false;
  }
  return true;
}

}  // namespace

void fold_if(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    if (!node->is(ops::if_)) continue;
    std::optional<double> condition = splat(node->input(0));
    if (!condition && asks_for_nothing(*node)) condition = 0;
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
