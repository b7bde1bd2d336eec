// SPDX-License-Identifier: Apache-2.0
//
// Removes nodes that give back their first operand: Identity, a Cast to the same type, x + 0, a Slice of
// everything, and so on. One predicate per operator says when a node is such a no-op.
#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "ops/ops.h"
#include "passes/axes.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

/// The operand that an arithmetic node with a neutral constant gives back, or null.
Value* without_neutral(const Node* node) {
  const auto neutral = [&](size_t i, double number) {
    const std::optional<double> found = splat(node->input(i));
    return found && *found == number;
  };
  if (node->is(ops::add)) return neutral(1, 0) ? node->input(0) : neutral(0, 0) ? node->input(1) : nullptr;
  if (node->is(ops::mul)) return neutral(1, 1) ? node->input(0) : neutral(0, 1) ? node->input(1) : nullptr;
  if (node->is(ops::sub)) return neutral(1, 0) ? node->input(0) : nullptr;
  if (node->is(ops::div) || node->is(ops::pow)) return neutral(1, 1) ? node->input(0) : nullptr;
  return nullptr;
}

/// Logical operators with a constant operand: x && true, x || false.
Value* without_neutral_truth(const Node* node) {
  const bool is_and = node->is(ops::and_);
  if (!is_and && !node->is(ops::or_)) return nullptr;
  for (size_t i = 0; i < 2; ++i)
    if (const std::optional<double> found = splat(node->input(i)); found && (*found != 0) == is_and)
      return node->input(1 - i);
  return nullptr;
}

/// What a Where with one known answer always takes.
Value* without_choice(const Node* node) {
  if (!node->is(ops::where)) return nullptr;
  const std::optional<double> condition = splat(node->input(0));
  return condition ? node->input(*condition != 0 ? 1 : 2) : nullptr;
}

bool all_zero(const Value* value) {
  const std::optional<double> found = splat(value);
  return found && *found == 0;
}

/// A Slice keeps everything when it keeps every size and never walks backwards.
bool slices_everything(const Node* node) {
  if (node->output()->type.shape != node->input(0)->type.shape) return false;
  const Value* steps = node->input(4);
  if (steps == nullptr) return true;
  if (!steps->is_constant()) return false;
  const std::vector<int64_t> values = steps->constant->integers();
  return std::all_of(values.begin(), values.end(), [](int64_t step) { return step > 0; });
}

/// The value that the node's first result equals, or null when the node computes something.
Value* source_of(const Node* node) {
  Value* x = node->input(0);
  if (x == nullptr) return nullptr;
  const Value* y = node->output();
  const bool same_shape = x->type.shape == y->type.shape;
  if (node->is(ops::identity)) return x;
  if (node->is(ops::cast)) return x->type.dtype == y->type.dtype ? x : nullptr;
  if (node->is(ops::transpose)) return is_identity(permutation_of(node)) ? x : nullptr;
  if (node->is(ops::slice)) return slices_everything(node) ? x : nullptr;
  if (node->is(ops::pad)) return all_zero(node->input(1)) ? x : nullptr;
  if (node->is(ops::concat)) return node->inputs.size() == 1 ? x : nullptr;
  if (node->is(ops::split)) return node->outputs.size() == 1 ? x : nullptr;
  if (node->is(ops::max) || node->is(ops::min)) return node->inputs.size() == 1 ? x : nullptr;
  if (node->op->traits.view || node->is(ops::expand) || node->is(ops::tile)) return same_shape ? x : nullptr;
  if (node->is(ops::relu)) return producer(x, ops::relu) != nullptr ? x : nullptr;
  Value* operand = without_neutral(node);
  if (operand == nullptr) operand = without_neutral_truth(node);
  if (operand == nullptr) operand = without_choice(node);
  return operand != nullptr && operand->type == y->type ? operand : nullptr;
}

/// Expand followed by a pointwise operator with a result as large: the operator broadcasts by itself.
bool broadcasts_without(const Node* expand, const Use& use) {
  if (!use.node->op->is_pointwise()) return false;
  Shape shape;
  bool first = true;
  for (size_t i = 0; i < use.node->inputs.size(); ++i) {
    const Shape& operand = i == use.index ? expand->input(0)->type.shape : use.node->input(i)->type.shape;
    shape = first ? operand : broadcast(shape, operand);
    first = false;
  }
  return shape == use.node->output()->type.shape;
}

}  // namespace

void eliminate_identity(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    Value* source = source_of(node);
    if (source == nullptr || !may_replace(graph, node->output(), source)) continue;
    if (node->output()->uses.empty() && !graph.is_output(node->output())) continue;
    context.report_removal(node->name);
    graph.replace(node->output(), source);
  }
}

void eliminate_dead(Graph& graph, const PassContext&) { graph.erase_dead(); }

void eliminate_expand(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    if (!node->is(ops::expand)) continue;
    for (const Use& use : std::vector<Use>(node->output()->uses)) {
      if (!broadcasts_without(node, use)) continue;
      context.report_removal(node->name);
      graph.set_input(use.node, use.index, node->input(0));
    }
  }
}

}  // namespace hone::passes
