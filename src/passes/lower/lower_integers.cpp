// SPDX-License-Identifier: Apache-2.0
//
// Products of bytes that no kernel sums up in integers, and whose sums become floats anyway, are products of floats: exact while
// a sum has at most 24 bits, off by its last bits beyond. Where the device has no integer kernels, or the weights are constants
// and no matrix, or have zero points that are not known.
#include <algorithm>

#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

constexpr const char* kFloat = "f32";

/// Casts to f32 of the sums, when nothing else reads them.
std::vector<Node*> casts_of(const Graph& graph, const Node& node) {
  std::vector<Node*> casts;
  if (graph.is_output(node.output())) return {};
  for (const Use& use : node.output()->uses) {
    if (!use.node->is(ops::cast) || use.node->output()->type.dtype != DType::f32) return {};
    casts.push_back(use.node);
  }
  return casts;
}

/// The operand in floats, less its zero point; one of each filter stands along the first of `rank` axes.
Value* without_zero(Graph& graph, Node* node, Value* value, Value* zero, size_t rank) {
  const auto in_floats = [&](Value* from) {
    return insert_for(graph, node, ops::cast, {from}, {{"to", std::string(kFloat)}}, {node})->output();
  };
  Value* wide = in_floats(value);
  if (zero == nullptr) return wide;
  Value* shift = in_floats(zero);
  if (rank > 1 && zero->type.shape.rank() == 1 && zero->type.shape.elements() != Dim(1)) {
    std::vector<int64_t> behind;
    for (size_t axis = 1; axis < rank; ++axis) behind.push_back(static_cast<int64_t>(axis));
    shift = insert_for(graph, node, ops::unsqueeze, {shift, integers(graph, std::move(behind))}, {}, {node})->output();
  }
  return insert_for(graph, node, ops::sub, {wide, shift}, {}, {node})->output();
}

/// The addition of constant integers to the sums, when nothing else reads them.
Node* addition_to(const Graph& graph, const Node& node) {
  if (!used_once(graph, node.output())) return nullptr;
  Node* reader = node.output()->uses[0].node;
  return reader->is(ops::add) && (reader->input(0)->is_constant() || reader->input(1)->is_constant()) ? reader
                                                                                                      : nullptr;
}

void lower(Graph& graph, Node* node) {
  Node* addition = addition_to(graph, *node);
  const std::vector<Node*> casts = casts_of(graph, addition == nullptr ? *node : *addition);
  if (casts.empty()) return;
  const bool conv = node->is(ops::conv_integer);
  Value* x = without_zero(graph, node, node->input(0), node->input(2), 1);
  Value* w = without_zero(graph, node, node->input(1), node->input(3), conv ? node->input(1)->type.shape.rank() : 1);
  Node* product =
      insert_for(graph, node, conv ? ops::conv : ops::mat_mul, {x, w}, conv ? node->attrs : Attrs{}, {node});
  if (addition != nullptr) {
    Value* addend = addition->input(addition->input(0)->is_constant() ? 0 : 1);
    addend = insert_for(graph, node, ops::cast, {addend}, {{"to", std::string(kFloat)}}, {addition})->output();
    product = insert_for(graph, node, ops::add, {product->output(), addend}, {}, {addition});
  }
  for (Node* cast : casts) {
    inherit(product, std::vector<const Node*>{product, cast});
    graph.replace(cast->output(), product->output());
  }
}

bool is_known_number(const Value* zero) {
  return zero == nullptr || (zero->is_constant() && zero->constant->size() == 1);
}

/// Of two operands that are made as the network runs.
bool is_product_of_matrices(const Node& node) {
  return node.is(ops::mat_mul_integer) && !node.input(0)->is_constant() && !node.input(1)->is_constant() &&
         node.input(0)->type.shape.rank() >= 2 && node.input(1)->type.shape.rank() >= 2 &&
         is_known_number(node.input(2)) && is_known_number(node.input(3));
}

bool has_integer_kernel(const Node& node, const PassContext& context) {
  if (!context.byte_matmuls) return false;
  if (!node.input(1)->is_constant()) return is_product_of_matrices(node);
  return node.is(ops::conv_integer) || node.input(1)->type.shape.rank() == 2;
}

}  // namespace

void lower_integers(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes())
    if ((node->is(ops::conv_integer) || node->is(ops::mat_mul_integer)) && !has_integer_kernel(*node, context))
      lower(graph, node);
}

}  // namespace hone::passes
