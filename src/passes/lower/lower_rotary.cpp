// SPDX-License-Identifier: Apache-2.0
//
// RotaryEmbedding as the rotation that kernels know: the angles of each position looked up, and doubled for both halves. Pairs of
// neighbours, and vectors of which a part stays as it is, are left to the reference.
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

class Lowering {
 public:
  Lowering(Graph& graph, Node* node) : graph_(graph), node_(node), x_(node->input(0)), shape_(x_->type.shape) {}

  bool possible() {
    const DType dtype = x_->type.dtype;
    if (node_->attrs.integer("interleaved") != 0 || x_->is_constant() || !follows_from_inputs(graph_, shape_) ||
        (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) || !find_vectors())
      return false;
    const Dim& depth = vectors_[3];
    const int64_t rotated = node_->attrs.integer("rotary_embedding_dim");
    return depth.is_constant() && depth.value() > 0 && depth.value() % 2 == 0 &&
           (rotated == 0 || depth == Dim(rotated)) && angles_fit(1) && angles_fit(2) &&
           node_->input(1)->type.shape == node_->input(2)->type.shape;
  }

  void run() {
    Value* x = view(graph_, node_, x_, vectors_, {node_});
    Value* y = add(ops::rotate, {x, angles(1), angles(2)});
    graph_.replace(node_->output(), view(graph_, node_, y, shape_, {node_}));
  }

 private:
  Value* add(const OpDef& op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return insert_for(graph_, node_, op, std::move(inputs), std::move(attrs), {node_})->output();
  }
  bool by_head() const { return shape_.rank() == 4; }
  Dim tokens() const { return shape_[by_head() ? 2 : 1]; }

  /// [batch, heads, tokens, depth], or [batch, tokens, heads, depth] where the heads are not apart yet.
  bool find_vectors() {
    if (by_head()) vectors_ = shape_;
    if (by_head() || shape_.rank() != 3) return by_head();
    const int64_t heads = node_->attrs.integer("num_heads");
    if (heads <= 0 || !shape_[2].is_constant() || shape_[2].value() % heads != 0) return false;
    vectors_ = Shape{shape_[0], shape_[1], Dim(heads), Dim(shape_[2].value() / heads)};
    return true;
  }

  /// A row for each position, or rows by number.
  bool angles_fit(size_t operand) const {
    const Value *rows = node_->input(operand), *numbers = node_->input(3);
    const Shape &shape = rows->type.shape, positions{shape_[0], tokens()};
    if (rows->type.dtype != x_->type.dtype || shape.rank() == 0 ||
        shape[shape.rank() - 1] != Dim(vectors_[3].value() / 2))
      return false;
    if (numbers == nullptr) return shape.rank() == 3 && shape[0] == positions[0] && shape[1] == positions[1];
    return shape.rank() == 2 && numbers->type.shape == positions;
  }

  /// What is constant is doubled before it is looked up.
  Value* angles(size_t operand) {
    Value* rows = node_->input(operand);
    const bool known = rows->is_constant();
    const auto doubled = [&](Value* value) { return add(ops::concat, {value, value}, {{"axis", int64_t{-1}}}); };
    if (known) rows = doubled(rows);
    if (node_->input(3) != nullptr) rows = add(ops::gather, {rows, node_->input(3)}, {{"axis", int64_t{0}}});
    if (!known) rows = doubled(rows);
    const Shape shape =
        by_head() ? Shape{shape_[0], Dim(1), tokens(), vectors_[3]} : Shape{shape_[0], tokens(), Dim(1), vectors_[3]};
    return view(graph_, node_, rows, shape, {node_});
  }

  Graph& graph_;
  Node* node_;
  Value* x_;
  const Shape shape_;  // of x
  Shape vectors_;
};

}  // namespace

void lower_rotary(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes())
    if (node->is(ops::rotary_embedding))
      if (Lowering lowering(graph, node); lowering.possible()) lowering.run();
  graph.erase_dead();
}

}  // namespace hone::passes
