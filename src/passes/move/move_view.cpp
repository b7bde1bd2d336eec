// SPDX-License-Identifier: Apache-2.0
//
// Views sink below what does not care about them: pointwise operators, Linear and normalisation over the last axis.
// So views of neighbouring layers meet and merge, and an activation comes to stand directly behind its Linear.
#include <algorithm>

#include "ir/op.h"
#include "ops/ops.h"
#include "passes/axes.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

/// Beyond this rank a Linear would gain nothing from keeping its operand's leading sizes.
constexpr size_t kMaxLinearRank = 4;

/// pointwise(View(x), …): every operand is a View of the same sizes from the same sizes, or a number.
bool sink_below_pointwise(Graph& graph, Node* node) {
  std::vector<Value*> sources;
  const Shape* shape = nullptr;
  for (Value* input : node->inputs) {
    if (input == nullptr) return false;
    if (splat(input) && input->constant->size() == 1 && input->type.shape.rank() <= 1) {
      sources.push_back(input);
      continue;
    }
    Node* inner = sole_producer(graph, input, ops::view);
    if (inner == nullptr || input->type.shape != node->output()->type.shape) return false;
    const Shape& source = inner->input(0)->type.shape;
    if (source.rank() == 0 || (shape != nullptr && *shape != source)) return false;
    shape = &source;
    sources.push_back(inner->input(0));
  }
  if (shape == nullptr) return false;
  Node* moved = insert_for(graph, node, *node->op, sources, node->attrs, {node});
  graph.replace(node->output(), view(graph, node, moved->output(), node->output()->type.shape, {node}));
  return true;
}

bool all_users_are(const Value* value, const OpDef& op) {
  return std::all_of(value->uses.begin(), value->uses.end(),
                     [&](const Use& use) { return use.node->is(op) && use.index == 0; });
}

/// The sizes [lead…, last] that `source` has when its trailing axes are merged to `last`; nothing when they do not.
std::optional<Shape> merged_tail(const Shape& source, const Dim& last) {
  Dim product(1);
  size_t cut = source.rank();
  while (cut > 0 && product != last) product = product * source[--cut];
  if (product != last || cut == source.rank()) return std::nullopt;
  Shape result;
  for (size_t i = 0; i < cut; ++i) result.push_back(source[i]);
  result.push_back(last);
  return result;
}

bool works_on_last_axis(const Node* node) {
  if (node->is(ops::linear) || node->is(ops::quantized_linear)) return true;
  if (!node->is(ops::layer_normalization) && !node->is(ops::rms_normalization)) return false;
  for (size_t i = 1; i < node->outputs.size(); ++i)
    if (!node->outputs[i]->uses.empty()) return false;
  const size_t rank = node->input(0)->type.shape.rank();
  return normalize_axis(node->attrs.integer("axis"), rank) == rank - 1;
}

/// linear(View(x)): computed on x's own leading sizes, and the View put behind.
bool sink_below_row_operator(Graph& graph, Node* node) {
  Node* inner = producer(node->input(0), ops::view);
  if (inner == nullptr || graph.is_output(inner->output()) || !all_users_are(inner->output(), *node->op)) return false;
  const Shape& viewed = inner->output()->type.shape;
  const std::optional<Shape> shape = merged_tail(inner->input(0)->type.shape, viewed[viewed.rank() - 1]);
  if (!shape || *shape == viewed || shape->rank() < 2 || shape->rank() > kMaxLinearRank) return false;
  std::vector<Value*> inputs = node->inputs;
  inputs[0] = view(graph, node, inner->input(0), *shape, {inner});
  Attrs attrs = node->attrs;
  if (attrs.has("axis")) attrs.set("axis", int64_t{-1});
  Node* moved = insert_for(graph, node, *node->op, std::move(inputs), std::move(attrs), {node});
  graph.replace(node->output(), view(graph, node, moved->output(), node->output()->type.shape, {node}));
  return true;
}

}  // namespace

void move_view(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes()) {
    if (node->op == nullptr || node->outputs.size() != 1) continue;
    const bool moved = node->op->is_pointwise() ? sink_below_pointwise(graph, node)
                                                : works_on_last_axis(node) && sink_below_row_operator(graph, node);
    if (moved) graph.erase_dead();
  }
}

}  // namespace hone::passes
