// SPDX-License-Identifier: Apache-2.0
//
// Transposes are moved until they meet: two in a row are one, one that undoes the other goes away, one that moves only
// axes of size 1 is a View. They sink below pointwise operators, slices, splits and concatenations; views that merge axes
// sink below transposes and views that split axes rise above them. One that leaves the last axis where it is passes a Linear when
// it meets another behind it. No rule adds a transposed element.
#include <algorithm>
#include <unordered_set>

#include "ir/op.h"
#include "ops/ops.h"
#include "passes/axes.h"
#include "passes/edit.h"
#include "passes/passes.h"
#include "passes/slices.h"

namespace hone::passes {
namespace {

Value* transpose(Graph& graph, Node* position, Value* value, Permutation permutation, std::vector<const Node*> parts) {
  return insert_for(graph, position, ops::transpose, {value}, {{"perm", std::move(permutation)}}, std::move(parts))
      ->output();
}

bool merge_with_inner(Graph& graph, Node* node) {
  Node* inner = producer(node->input(0), ops::transpose);
  if (inner == nullptr) return false;
  Permutation permutation = compose(permutation_of(inner), permutation_of(node));
  Value* source = inner->input(0);
  const bool nothing_left = is_identity(permutation) && may_replace(graph, node->output(), source);
  graph.replace(node->output(),
                nothing_left ? source : transpose(graph, node, source, std::move(permutation), {inner, node}));
  return true;
}

bool turn_into_view(Graph& graph, Node* node) {
  const Value* x = node->input(0);
  if (!keeps_order(x->type.shape, permutation_of(node)) || x->type.shape == node->output()->type.shape ||
      !follows_from_inputs(graph, x->type.shape))
    return false;
  graph.replace(node->output(), view(graph, node, node->input(0), node->output()->type.shape, {node}));
  return true;
}

/// Of a View that merges axes the runs that it merges. One that only adds or drops sizes of 1 rises instead; see sink_below_split.
std::optional<std::vector<AxisRange>> merged_axes(const Node* view) {
  const Shape &fine = view->input(0)->type.shape, &coarse = view->output()->type.shape;
  return groups(coarse, fine) ? std::nullopt : groups(fine, coarse);
}

/// Transpose(View(x)) where the View merges axes: transposes x by groups of axes, then merges.
bool rise_above_merge(Graph& graph, Node* node) {
  Node* inner = sole_producer(graph, node->input(0), ops::view);
  if (inner == nullptr) return false;
  const Shape& fine = inner->input(0)->type.shape;
  const std::optional<std::vector<AxisRange>> runs = merged_axes(inner);
  if (!runs) return false;
  Permutation permutation;
  for (const int64_t axis : permutation_of(node))
    for (size_t i = (*runs)[static_cast<size_t>(axis)].begin; i < (*runs)[static_cast<size_t>(axis)].end; ++i)
      permutation.push_back(static_cast<int64_t>(i));
  if (permutation.size() != fine.rank()) return false;
  Value* moved = transpose(graph, node, inner->input(0), std::move(permutation), {node});
  graph.replace(node->output(), view(graph, node, moved, node->output()->type.shape, {inner}));
  return true;
}

/// View(Transpose(x)) where the View splits axes: splits x, then transposes by groups of axes.
bool sink_below_split(Graph& graph, Node* node) {
  Node* inner = sole_producer(graph, node->input(0), ops::transpose);
  if (inner == nullptr) return false;
  const Shape& fine = node->output()->type.shape;
  const std::optional<std::vector<AxisRange>> runs = groups(fine, inner->output()->type.shape);
  if (!runs || fine.rank() == 0) return false;
  const Permutation back = inverse(permutation_of(inner));
  // Order of the fine axes below the transpose: the runs in the order of x's axes.
  Permutation order;
  for (const int64_t axis : back)
    for (size_t i = (*runs)[static_cast<size_t>(axis)].begin; i < (*runs)[static_cast<size_t>(axis)].end; ++i)
      order.push_back(static_cast<int64_t>(i));
  if (order.size() != fine.rank()) return false;
  Value* split = view(graph, node, inner->input(0), permuted(fine, order), {node});
  graph.replace(node->output(), transpose(graph, node, split, inverse(order), {inner}));
  return true;
}

/// A constant operand as it must be before the transpose: reordered, with missing leading sizes of 1 put in.
Value* constant_before(Graph& graph, Node* position, Value* constant, const Permutation& permutation) {
  if (constant->type.shape.rank() == 0 || constant->constant->size() == 1) return constant;
  Dims dims = constant->constant->dims();
  dims.insert(dims.begin(), permutation.size() - dims.size(), 1);
  Value* full = graph.add_constant(constant->constant->reshaped(dims), constant->name);
  Node* node = graph.insert(position, ops::transpose, {full}, {{"perm", inverse(permutation)}}, position->name);
  return graph.add_constant(evaluate_node(*node, {&*full->constant}).front());
}

/// Whether everything computed from a transposed value by nodes that a transpose can sink below comes together again in
/// one value at most (rotary embeddings: scaled, and its halves swapped and scaled, then added). Then sinking below each
/// of several readers ends with no more transposes than before.
bool comes_together(const Graph& graph, const Value* transposed) {
  std::unordered_set<const Value*> region{transposed};
  std::unordered_set<const Value*> exits;
  const auto inside = [&](const Value* value) {
    return value != nullptr && (value->is_constant() || region.contains(value));
  };
  for (const Node* node : graph.nodes()) {
    const bool reads = std::any_of(node->inputs.begin(), node->inputs.end(),
                                   [&](const Value* value) { return region.contains(value); });
    if (!reads) continue;
    const bool passes = (node->op->is_pointwise() || node->is(ops::concat) || slice_range(node)) &&
                        std::all_of(node->inputs.begin(), node->inputs.end(), inside);
    if (passes) region.insert(node->output());
    else
      for (const Value* value : node->inputs)
        if (region.contains(value)) exits.insert(value);
  }
  for (const Value* output : graph.outputs())
    if (region.contains(output)) exits.insert(output);
  return exits.size() <= 1 && !exits.contains(transposed);
}

/// pointwise(Transpose(x), …): every operand is transposed alike or constant, and one of them has no other reader.
bool sink_below_pointwise(Graph& graph, Node* node) {
  std::optional<Permutation> permutation;
  bool frees_one = false;
  for (const Value* input : node->inputs) {
    if (input == nullptr) return false;
    if (input->is_constant()) {
      if (input->constant->size() != 1 && input->type.shape.rank() > node->output()->type.shape.rank()) return false;
      continue;
    }
    const Node* inner = producer(input, ops::transpose);
    if (inner == nullptr || input->type.shape.rank() != node->output()->type.shape.rank()) return false;
    if (permutation && *permutation != permutation_of(inner)) return false;
    permutation = permutation_of(inner);
    frees_one |=
        input->type.shape == node->output()->type.shape && (used_once(graph, input) || comes_together(graph, input));
  }
  if (!permutation || !frees_one) return false;
  const Permutation kept = *permutation;
  std::vector<Value*> inputs;
  for (Value* input : node->inputs)
    inputs.push_back(input->is_constant() ? constant_before(graph, node, input, kept) : input->producer->input(0));
  Node* moved = insert_for(graph, node, *node->op, std::move(inputs), node->attrs, {node});
  graph.replace(node->output(), transpose(graph, node, moved->output(), kept, {node}));
  return true;
}

bool sink_below_concat(Graph& graph, Node* node) {
  std::vector<Value*> inputs;
  std::optional<Permutation> permutation;
  for (const Value* input : node->inputs) {
    const Node* inner = sole_producer(graph, input, ops::transpose);
    if (inner == nullptr || (permutation && *permutation != permutation_of(inner))) return false;
    permutation = permutation_of(inner);
    inputs.push_back(inner->input(0));
  }
  if (!permutation) return false;
  const Permutation kept = *permutation;
  const size_t axis = normalize_axis(node->attrs.integer("axis"), kept.size());
  Node* moved = insert_for(graph, node, ops::concat, std::move(inputs), {{"axis", kept[axis]}}, {node});
  graph.replace(node->output(), transpose(graph, node, moved->output(), kept, {node}));
  return true;
}

bool only_taken_apart(const Graph& graph, const Value* value) {
  return !graph.is_output(value) && std::all_of(value->uses.begin(), value->uses.end(), [](const Use& use) {
    return use.node->is(ops::split) || slice_range(use.node).has_value();
  });
}

bool sink_below_slice(Graph& graph, Node* node) {
  Node* inner = producer(node->input(0), ops::transpose);
  const std::optional<SliceRange> range = slice_range(node);
  if (inner == nullptr || !range ||
      !(only_taken_apart(graph, inner->output()) || comes_together(graph, inner->output())))
    return false;
  const auto axis = static_cast<size_t>(permutation_of(inner)[range->axis]);
  Node* moved = insert_slice(graph, node, inner->input(0), {axis, range->begin, range->end}, {node});
  graph.replace(node->output(), transpose(graph, node, moved->output(), permutation_of(inner), {inner}));
  return true;
}

bool sink_below_split_node(Graph& graph, Node* node) {
  Node* inner = producer(node->input(0), ops::transpose);
  if (inner == nullptr || !only_taken_apart(graph, inner->output())) return false;
  const size_t axis = normalize_axis(node->attrs.integer("axis"), permutation_of(inner).size());
  std::vector<Value*> inputs = node->inputs;
  inputs[0] = inner->input(0);
  Attrs attrs = node->attrs;
  attrs.set("axis", permutation_of(inner)[axis]);
  Node* moved = insert_for(graph, node, ops::split, std::move(inputs), std::move(attrs), {node}, node->outputs.size());
  for (size_t i = 0; i < node->outputs.size(); ++i)
    if (!node->outputs[i]->uses.empty())
      graph.replace(node->outputs[i], transpose(graph, node, moved->outputs[i], permutation_of(inner), {inner}));
  return true;
}

bool multiplies_rows(const Node* node) {
  return node != nullptr && (node->is(ops::linear) || node->is(ops::quantized_linear));
}

bool keeps_last_axis(const Permutation& permutation) {
  return !permutation.empty() && permutation.back() == static_cast<int64_t>(permutation.size()) - 1;
}

/// Whether all that is read of a value is transposed, views aside.
bool is_transposed_next(const Graph& graph, const Value* value) {
  return !graph.is_output(value) && !value->uses.empty() && std::ranges::all_of(value->uses, [&](const Use& use) {
    return use.node->is(ops::transpose) ||
           (use.node->is(ops::view) && use.index == 0 && is_transposed_next(graph, use.node->output()));
  });
}

/// linear(Transpose(x)) for all that read it, where each result is transposed again.
bool sink_below_linears(Graph& graph, Node* node) {
  const Permutation permutation = permutation_of(node);
  const std::vector<Use> uses = node->output()->uses;
  if (graph.is_output(node->output()) || uses.empty() || !keeps_last_axis(permutation)) return false;
  const bool all_pass = std::ranges::all_of(uses, [&](const Use& use) {
    return use.index == 0 && multiplies_rows(use.node) && is_transposed_next(graph, use.node->output());
  });
  if (!all_pass) return false;
  for (const Use& use : uses) {
    std::vector<Value*> inputs = use.node->inputs;
    inputs[0] = node->input(0);
    Node* moved = insert_for(graph, use.node, *use.node->op, std::move(inputs), use.node->attrs, {use.node});
    graph.replace(use.node->output(), transpose(graph, use.node, moved->output(), permutation, {node}));
  }
  return true;
}

/// Transpose(linear(x)), where x is a transposed value, or a View that merges axes of one: it goes where these meet.
bool rise_above_linear(Graph& graph, Node* node) {
  Node* inner = node->input(0)->producer;
  if (!multiplies_rows(inner) || !used_once(graph, inner->output()) || !keeps_last_axis(permutation_of(node)))
    return false;
  const Node* merge = sole_producer(graph, inner->input(0), ops::view);
  const Value* source = merge == nullptr ? inner->input(0) : merge->input(0);
  if (sole_producer(graph, source, ops::transpose) == nullptr || (merge != nullptr && !merged_axes(merge)))
    return false;
  std::vector<Value*> inputs = inner->inputs;
  inputs[0] = transpose(graph, node, inputs[0], permutation_of(node), {node});
  Node* raised = inputs[0]->producer;
  Node* moved = insert_for(graph, node, *inner->op, std::move(inputs), inner->attrs, {inner});
  graph.replace(node->output(), moved->output());
  graph.erase_dead();
  if (merge != nullptr && rise_above_merge(graph, raised)) raised = moved->input(0)->producer->input(0)->producer;
  return merge_with_inner(graph, raised);
}

bool move_one(Graph& graph, Node* node) {
  if (node->is(ops::transpose))
    return merge_with_inner(graph, node) || turn_into_view(graph, node) || rise_above_merge(graph, node) ||
           sink_below_linears(graph, node) || rise_above_linear(graph, node);
  if (node->is(ops::view)) return sink_below_split(graph, node);
  if (node->is(ops::concat)) return sink_below_concat(graph, node);
  if (node->is(ops::slice)) return sink_below_slice(graph, node);
  if (node->is(ops::split)) return sink_below_split_node(graph, node);
  return node->op->is_pointwise() && node->outputs.size() == 1 && sink_below_pointwise(graph, node);
}

}  // namespace

void move_transpose(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes())
    if (node->op != nullptr && move_one(graph, node)) graph.erase_dead();
}

}  // namespace hone::passes
