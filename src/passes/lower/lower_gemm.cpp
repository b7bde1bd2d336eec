// SPDX-License-Identifier: Apache-2.0
//
// Gemm, and MatMul with a constant matrix, become Linear: the one operator that matrix kernels with packed weights and
// fused epilogues answer. A bias joins through fold_scale's rule for Add.
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

/// Removes leading sizes of 1 from a constant matrix: [1, 1, K, N] to [K, N].
Value* as_matrix(Graph& graph, Value* weight) {
  const Dims& dims = weight->constant->dims();
  if (dims.size() == 2) return weight;
  for (size_t i = 0; i + 2 < dims.size(); ++i)
    if (dims[i] != 1) return nullptr;
  return graph.add_constant(weight->constant->reshaped({dims[dims.size() - 2], dims[dims.size() - 1]}), weight->name);
}

void lower_mat_mul(Graph& graph, Node* node) {
  Value* weight = node->input(1);
  const size_t rank = node->input(0)->type.shape.rank();
  if (!weight->is_constant() || !is_float(weight->type.dtype) || weight->type.shape.rank() < 2 || rank < 2 ||
      weight->type.shape.rank() > rank)
    return;
  weight = as_matrix(graph, weight);
  if (weight == nullptr) return;
  Node* linear = insert_for(graph, node, ops::linear, {node->input(0), weight}, {{"trans_w", int64_t{0}}}, {node});
  graph.replace(node->output(), linear->output());
}

/// alpha * A * B + beta * C with constant B and C, A not transposed.
void lower_one_gemm(Graph& graph, Node* node) {
  Value* weight = node->input(1);
  Value* bias = node->input(2);
  const double alpha = node->attrs.real("alpha"), beta = node->attrs.real("beta");
  if (node->attrs.integer("transA") != 0 || !weight->is_constant() || !is_float(weight->type.dtype) || alpha != 1)
    return;
  const Attrs attrs{{"trans_w", node->attrs.integer("transB")}};
  std::vector<Value*> inputs{node->input(0), weight};
  const int64_t columns = node->output()->type.shape[1].is_constant() ? node->output()->type.shape[1].value() : -1;
  const bool vector_bias = bias != nullptr && bias->is_constant() && beta == 1 && bias->constant->size() == columns &&
                           bias->constant->dims().back() == columns;
  if (vector_bias) inputs.push_back(graph.add_constant(bias->constant->reshaped({columns}), bias->name));
  Value* result = insert_for(graph, node, ops::linear, std::move(inputs), attrs, {node})->output();
  if (bias != nullptr && !vector_bias && beta != 0) {
    if (beta != 1)
      bias = insert_for(graph, node, ops::mul, {bias, scalar(graph, bias->type.dtype, beta)}, {}, {node})->output();
    result = insert_for(graph, node, ops::add, {result, bias}, {}, {node})->output();
  }
  graph.replace(node->output(), result);
}

}  // namespace

void lower_gemm(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes()) {
    if (node->is(ops::mat_mul)) lower_mat_mul(graph, node);
    else if (node->is(ops::gemm)) lower_one_gemm(graph, node);
  }
}

}  // namespace hone::passes
