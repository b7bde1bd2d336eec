// SPDX-License-Identifier: Apache-2.0
//
// A matmul of tensors that were quantised to bytes, which exporters write as DequantizeLinear before MatMul or Gemm: the sums of the
// bytes are multiplied by both scales instead. Runs before the weights' DequantizeLinear is folded.
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

bool is_byte(const Value* value) { return value->type.dtype == DType::u8 || value->type.dtype == DType::i8; }

/// The DequantizeLinear of bytes to f32 that gives the value; null where there is none.
Node* dequantized(const Value* value) {
  Node* node = producer(value, ops::dequantize_linear);
  const bool fits = node != nullptr && is_byte(node->input(0)) && node->output()->type.dtype == DType::f32 &&
                    node->attrs.integer("block_size") == 0;
  return fits ? node : nullptr;
}

bool has_one_scale(const Node& node) { return node.input(1)->type.shape.elements() == Dim(1); }

/// Constant weights of a matrix, with a scale for all or one for each column of the product (`axis`).
bool are_weights(const Node& node, int64_t axis) {
  const Shape& shape = node.input(0)->type.shape;
  if (!node.input(0)->is_constant() || shape.rank() != 2 || !node.input(1)->is_constant()) return false;
  if (node.input(2) != nullptr && !node.input(2)->is_constant()) return false;
  const int64_t given = node.attrs.integer("axis");
  return has_one_scale(node) || (given < 0 ? given + 2 : given) == axis;
}

void lower(Graph& graph, Node* node) {
  const bool gemm = node->is(ops::gemm), transposed = gemm && node->attrs.integer("transB") != 0;
  if (gemm && (node->attrs.integer("transA") != 0 || node->attrs.real("alpha") != 1 || node->attrs.real("beta") != 1))
    return;
  Node *x = dequantized(node->input(0)), *w = dequantized(node->input(1));
  if (x == nullptr || w == nullptr || !has_one_scale(*x) || !are_weights(*w, transposed ? 0 : 1)) return;
  const auto add = [&](const OpDef& op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return insert_for(graph, node, op, std::move(inputs), std::move(attrs), {x, w, node})->output();
  };
  Value* weights = w->input(0);
  if (transposed) weights = add(ops::transpose, {weights}, {{"perm", Dims{1, 0}}});
  Value* sums = add(ops::mat_mul_integer, {x->input(0), weights, x->input(2), w->input(2)});
  Value* scale = add(ops::mul, {w->input(1), x->input(1)});
  Value* result = add(ops::mul, {add(ops::cast, {sums}, {{"to", std::string(name_of(DType::f32))}}), scale});
  if (gemm && node->input(2) != nullptr) result = add(ops::add, {result, node->input(2)});
  graph.replace(node->output(), result);
}

}  // namespace

void lower_quantized(Graph& graph, const PassContext& context) {
  if (!context.byte_matmuls) return;
  for (Node* node : graph.nodes())
    if (node->is(ops::mat_mul) || node->is(ops::gemm)) lower(graph, node);
}

}  // namespace hone::passes
