// SPDX-License-Identifier: Apache-2.0
//
// A matmul or convolution of tensors that were quantised to bytes, which exporters write as DequantizeLinear before MatMul, Gemm or
// Conv: the sums of the bytes are multiplied by both scales instead. Runs before the weights' DequantizeLinear is folded.
#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

constexpr double kSameScale = 1e-6;  // relative: products of two scales, rounded once

bool is_byte(const Value* value) { return value->type.dtype == DType::u8 || value->type.dtype == DType::i8; }

/// The DequantizeLinear of bytes to f32 that gives the value; null where there is none.
Node* dequantized(const Value* value) {
  Node* node = producer(value, ops::dequantize_linear);
  const bool fits = node != nullptr && is_byte(node->input(0)) && node->output()->type.dtype == DType::f32 &&
                    node->attrs.integer("block_size") == 0;
  return fits ? node : nullptr;
}

bool has_one_scale(const Node& node) { return node.input(1)->type.shape.elements() == Dim(1); }

/// Constant weights with a scale for all, or one for each index of `axis`.
bool are_weights(const Node& node, int64_t axis) {
  const auto rank = static_cast<int64_t>(node.input(0)->type.shape.rank());
  if (!node.input(0)->is_constant() || !node.input(1)->is_constant()) return false;
  if (node.input(2) != nullptr && !node.input(2)->is_constant()) return false;
  const int64_t given = node.attrs.integer("axis");
  return has_one_scale(node) || (given < 0 ? given + rank : given) == axis;
}

/// What a product is lowered to, step by step, before it.
class Lowering {
 public:
  Lowering(Graph& graph, Node* node, Node* x, Node* w) : graph_(graph), node_(node), x_(x), w_(w) {}

  Value* add(const OpDef& op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return insert_for(graph_, node_, op, std::move(inputs), std::move(attrs), {x_, w_, node_})->output();
  }
  /// A value per channel so that it stands along axis 1 of a result of this rank.
  Value* per_channel(Value* value, size_t rank) {
    if (value->type.shape.rank() != 1 || rank == 2) return value;
    std::vector<int64_t> behind;
    for (size_t axis = 1; axis + 1 < rank; ++axis) behind.push_back(static_cast<int64_t>(axis));
    return add(ops::unsqueeze, {value, integers(graph_, std::move(behind))});
  }
  /// Sums of a result of this rank, whose channels are along axis 1, and the bias: in integers where it was quantised like the sums.
  void finish(Value* sums, Value* bias, size_t rank) {
    Value* steps = bias == nullptr ? nullptr : bias_steps(*bias);
    if (steps != nullptr) sums = add(ops::add, {sums, per_channel(steps, rank)});
    Value* scale = per_channel(add(ops::mul, {w_->input(1), x_->input(1)}), rank);
    Value* result = add(ops::mul, {add(ops::cast, {sums}, {{"to", std::string(name_of(DType::f32))}}), scale});
    if (bias != nullptr && steps == nullptr) result = add(ops::add, {result, per_channel(bias, rank)});
    graph_.replace(node_->output(), result);
  }

 private:
  /// The integers of which a bias is made with the scale of the sums; null where it is not.
  Value* bias_steps(const Value& bias) const {
    const Node* node = producer(&bias, ops::dequantize_linear);
    if (node == nullptr || node->input(0)->type.dtype != DType::i32 || !node->input(0)->is_constant()) return nullptr;
    if (node->input(0)->type.shape.rank() != 1 || (node->input(2) != nullptr && !is_splat(node->input(2), 0)))
      return nullptr;
    return has_scale_of_sums(*node->input(1)) ? node->input(0) : nullptr;
  }
  bool has_scale_of_sums(const Value& scale) const {
    const Value *x = x_->input(1), *w = w_->input(1);
    if (!scale.is_constant() || !x->is_constant()) return false;
    const std::vector<double> steps = numbers_of(*scale.constant), filters = numbers_of(*w->constant);
    const double one = numbers_of(*x->constant)[0];
    for (size_t i = 0; i < std::max(steps.size(), filters.size()); ++i) {
      const double wanted = filters[filters.size() == 1 ? 0 : i] * one, step = steps[steps.size() == 1 ? 0 : i];
      if (std::fabs(step - wanted) > kSameScale * wanted) return false;
    }
    return true;
  }

  Graph& graph_;
  Node *node_, *x_, *w_;
};

bool has_known_zero(const Node& node) {
  return node.input(2) == nullptr || (node.input(2)->is_constant() && node.input(2)->constant->size() == 1);
}

/// Its operand, where the last axis of that is another one of the result's: [.., N, K] that a matmul wants as [.., K, N].
Value* turned_columns(Graph& graph, Node* position, Value* value) {
  Node* turn = producer(value, ops::transpose);
  if (turn == nullptr) return nullptr;
  Dims order = turn->attrs.integers("perm");
  const auto rank = static_cast<int64_t>(order.size());
  if (rank < 2 || order[static_cast<size_t>(rank) - 2] != rank - 1) return nullptr;
  std::swap(order[order.size() - 2], order.back());
  if (std::ranges::is_sorted(order)) return turn->input(0);
  return insert_for(graph, position, ops::transpose, {turn->input(0)}, {{"perm", order}}, {turn})->output();
}

/// Whether the scores of an attention stay floats up to its Softmax: what fuses them never stores them.
bool feeds_softmax(const Value* scores) {
  for (int depth = 0; depth < 6 && scores->uses.size() == 1; ++depth) {
    const Node* reader = scores->uses[0].node;
    if (reader->is(ops::softmax)) return true;
    if (reader->outputs.size() != 1 || !reader->op->is_pointwise()) return false;
    scores = reader->output();
  }
  return false;
}

/// Two operands that are both made as the network runs, as in attention.
void lower_product(Graph& graph, Node* node, Node* x, Node* w) {
  for (const Node* operand : {x, w})
    if (!has_one_scale(*operand) || !has_known_zero(*operand) || operand->output()->type.shape.rank() < 2) return;
  if (!x->input(1)->is_constant() || !w->input(1)->is_constant() || feeds_softmax(node->output())) return;
  Lowering lowering(graph, node, x, w);
  Value* columns = turned_columns(graph, node, w->input(0));
  const Attrs attrs{{"trans_b", int64_t{columns != nullptr}}};
  lowering.finish(
      lowering.add(ops::mat_mul_integer,
                   {x->input(0), columns == nullptr ? w->input(0) : columns, x->input(2), w->input(2)}, attrs),
      nullptr, 2);
}

void lower_matmul(Graph& graph, Node* node) {
  const bool gemm = node->is(ops::gemm), transposed = gemm && node->attrs.integer("transB") != 0;
  if (gemm && (node->attrs.integer("transA") != 0 || node->attrs.real("alpha") != 1 || node->attrs.real("beta") != 1))
    return;
  Node *x = dequantized(node->input(0)), *w = dequantized(node->input(1));
  if (x != nullptr && w != nullptr && !gemm && !x->input(0)->is_constant() && !w->input(0)->is_constant())
    return lower_product(graph, node, x, w);
  if (x == nullptr || w == nullptr || w->input(0)->type.shape.rank() != 2 || !has_one_scale(*x) ||
      !are_weights(*w, transposed ? 0 : 1))
    return;
  Lowering lowering(graph, node, x, w);
  Value* weights = w->input(0);
  if (transposed) weights = lowering.add(ops::transpose, {weights}, {{"perm", Dims{1, 0}}});
  Value* sums = lowering.add(ops::mat_mul_integer, {x->input(0), weights, x->input(2), w->input(2)});
  lowering.finish(sums, gemm ? node->input(2) : nullptr, 2);
}

void lower_conv(Graph& graph, Node* node) {
  Node *x = dequantized(node->input(0)), *w = dequantized(node->input(1));
  if (x == nullptr || w == nullptr || !has_one_scale(*x) || !are_weights(*w, 0)) return;
  Lowering lowering(graph, node, x, w);
  Value* sums = lowering.add(ops::conv_integer, {x->input(0), w->input(0), x->input(2), w->input(2)}, node->attrs);
  lowering.finish(sums, node->input(2), node->input(0)->type.shape.rank());
}

}  // namespace

void lower_quantized(Graph& graph, const PassContext& context) {
  if (!context.byte_matmuls) return;
  for (Node* node : graph.nodes())
    if (node->is(ops::mat_mul) || node->is(ops::gemm)) lower_matmul(graph, node);
    else if (node->is(ops::conv)) lower_conv(graph, node);
}

}  // namespace hone::passes
