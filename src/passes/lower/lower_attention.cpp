// SPDX-License-Identifier: Apache-2.0
//
// ONNX's Attention as the attention that kernels know: heads apart, caches joined, what excludes keys as one mask that is added.
// A window is such a mask too; scores with a soft cap are written out as products around it. Lengths of the cache and the scores as a
// result stay with the reference.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::vector<int64_t> kSwapHeads{0, 2, 1, 3};

enum Operand : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kLengths };

class Lowering {
 public:
  Lowering(Graph& graph, Node* node) : graph_(graph), node_(node) {}

  bool possible() const {
    // A window then leaves every query its own key.
    if ((window("left_window_size") >= 0 || window("right_window_size") >= 0) && length_of(kQ) != length_of(kK))
      return false;
    if (node_->input(kLengths) != nullptr || is_used(3)) return false;
    const DType dtype = node_->input(kQ)->type.dtype;
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) return false;
    for (const size_t i : {kQ, kK, kV, kPastKey, kPastValue})
      if (const Value* value = node_->input(i);
          value != nullptr && (value->type.dtype != dtype || !follows_from_inputs(graph_, value->type.shape)))
        return false;
    return sizes_fit() && mask_fits();
  }

  void run() {
    const double softcap = node_->attrs.real("softcap");
    by_token_ = softcap <= 0 && is_packed(kQ) && is_packed(kK) && is_packed(kV) && node_->input(kPastKey) == nullptr;
    Value *k = with_past(kK, kPastKey), *v = with_past(kV, kPastValue);
    std::vector<Value*> inputs{heads_apart(kQ), by_token_ ? heads_apart(kK) : k, by_token_ ? heads_apart(kV) : v};
    Value* empty = nullptr;  // queries that may see no key: their results are zeros
    Value* mask = find_mask(empty);
    if (mask != nullptr) inputs.push_back(mask);
    const Attrs attrs{{"scale", scale()}, {"layout", std::string(by_token_ ? "bshd" : "bhsd")}};
    Value* result = softcap > 0 ? capped(inputs[0], k, v, mask, softcap)
                                : add(ops::scaled_dot_product_attention, std::move(inputs), attrs);
    if (empty != nullptr) {
      if (by_token_) empty = add(ops::transpose, {empty}, {{"perm", kSwapHeads}});
      result = add(ops::where, {empty, scalar(graph_, result->type.dtype, 0), result});
    }
    if (is_packed(kQ) && !by_token_) result = add(ops::transpose, {result}, {{"perm", kSwapHeads}});
    graph_.replace(node_->output(0), view(graph_, node_, result, node_->output(0)->type.shape, {node_}));
    if (is_used(1)) graph_.replace(node_->output(1), k);
    if (is_used(2)) graph_.replace(node_->output(2), v);
  }

 private:
  Value* add(const OpDef& op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return insert_for(graph_, node_, op, std::move(inputs), std::move(attrs), {node_})->output();
  }
  const Shape& shape_of(size_t operand) const { return node_->input(operand)->type.shape; }
  bool is_packed(size_t operand) const { return shape_of(operand).rank() == 3; }
  bool is_used(size_t i) const {
    return i < node_->outputs.size() && (!node_->outputs[i]->uses.empty() || graph_.is_output(node_->outputs[i]));
  }

  Dim heads_of(size_t operand) const {
    return is_packed(operand) ? Dim(node_->attrs.integer(operand == kQ ? "q_num_heads" : "kv_num_heads"))
                              : shape_of(operand)[1];
  }
  Dim length_of(size_t operand) const { return shape_of(operand)[is_packed(operand) ? 1 : 2]; }
  Dim depth_of(size_t operand) const {
    return is_packed(operand) ? floor_divide(shape_of(operand)[2], heads_of(operand)) : shape_of(operand)[3];
  }
  Dim past_length() const { return node_->input(kPastKey) == nullptr ? Dim(0) : shape_of(kPastKey)[2]; }
  Dim keys() const { return past_length() + length_of(kK); }
  double scale() const {
    if (node_->attrs.has("scale")) return node_->attrs.real("scale");
    return 1 / std::sqrt(static_cast<double>(depth_of(kQ).value()));
  }

  bool sizes_fit() const {
    for (const size_t i : {kQ, kK, kV})
      if (!heads_of(i).is_constant() || !depth_of(i).is_constant() || heads_of(i).value() <= 0 ||
          depth_of(i).value() <= 0 || shape_of(i)[0] != shape_of(kQ)[0])
        return false;
    const bool cached = node_->input(kPastKey) != nullptr;
    if (cached != (node_->input(kPastValue) != nullptr)) return false;
    if (cached && (shape_of(kPastKey)[2] != shape_of(kPastValue)[2] || shape_of(kPastKey)[1] != heads_of(kK)))
      return false;
    return heads_of(kK) == heads_of(kV) && heads_of(kQ).value() % heads_of(kK).value() == 0 &&
           depth_of(kQ) == depth_of(kK) && length_of(kK) == length_of(kV) && keys() != Dim(0);
  }

  /// Broadcast against [batch, heads, queries, keys]; a mask that ends before the keys do is the reference's.
  bool mask_fits() const {
    const Value* mask = node_->input(kMask);
    if (mask == nullptr) return true;
    const Shape& shape = mask->type.shape;
    const Dim wanted[] = {shape_of(kQ)[0], heads_of(kQ), length_of(kQ), keys()};
    if (shape.rank() == 0 || shape.rank() > 4 || (mask->type.dtype != DType::boolean && !is_float(mask->type.dtype)))
      return false;
    for (size_t from_end = 1; from_end <= shape.rank(); ++from_end)
      if (const Dim& dim = shape[shape.rank() - from_end]; dim != wanted[4 - from_end] && dim != Dim(1)) return false;
    return true;
  }

  /// [batch, length, heads, depth], or [batch, heads, length, depth] unless all operands lie by token.
  Value* heads_apart(size_t operand) {
    Value* value = node_->input(operand);
    if (!is_packed(operand)) return value;
    const Shape apart{shape_of(operand)[0], shape_of(operand)[1], heads_of(operand), depth_of(operand)};
    value = view(graph_, node_, value, apart, {node_});
    return by_token_ ? value : add(ops::transpose, {value}, {{"perm", kSwapHeads}});
  }

  /// All keys or values as [batch, heads, length, depth]; null where nobody wants them so.
  Value* with_past(size_t operand, size_t past) {
    if (by_token_ && !is_used(operand)) return nullptr;
    const bool by_token = std::exchange(by_token_, false);
    Value* value = heads_apart(operand);
    by_token_ = by_token;
    if (node_->input(past) == nullptr) return value;
    return add(ops::concat, {node_->input(past), value}, {{"axis", int64_t{2}}});
  }

  Value* size(const Dim& dim) {
    if (dim.is_constant()) return graph_.add_constant(Tensor::scalar<int64_t>(dim.value()));
    return add(ops::symbolic_constant, {},
               {{"values", std::vector<std::string>{dim.text()}}, {"dims", std::vector<int64_t>{}}});
  }
  Value* counting(const Dim& count) { return add(ops::range, {size(Dim(0)), size(count), size(Dim(1))}); }
  Value* excluding(Value* seen, DType dtype) {
    return add(ops::where, {seen, scalar(graph_, dtype, 0), scalar(graph_, dtype, -kInfinity)});
  }

  int64_t window(const char* name) const { return node_->attrs.integer(name); }
  bool depends_on_position() const {
    return node_->attrs.integer("is_causal") != 0 || window("left_window_size") >= 0 ||
           window("right_window_size") >= 0;
  }

  /// 0 where a query may see a key by its position, else minus infinity: [queries, keys].
  Value* position_mask(DType dtype) {
    Value* positions = add(ops::add, {counting(length_of(kQ)), size(past_length())});
    positions = view(graph_, node_, positions, Shape{length_of(kQ), Dim(1)}, {node_});
    Value *all = counting(keys()), *seen = nullptr;
    const auto also = [&](Value* condition) { seen = seen == nullptr ? condition : add(ops::and_, {seen, condition}); };
    if (node_->attrs.integer("is_causal") != 0) also(add(ops::less_or_equal, {all, positions}));
    if (const int64_t left = window("left_window_size"); left >= 0)
      also(add(ops::greater_or_equal, {all, add(ops::sub, {positions, size(Dim(left))})}));
    if (const int64_t right = window("right_window_size"); right >= 0)
      also(add(ops::less_or_equal, {all, add(ops::add, {positions, size(Dim(right))})}));
    return excluding(seen, dtype);
  }

  /// Heads that share keys are rows of one product; between the products a head stands apart for its mask.
  Value* capped(Value* q, Value* k, Value* v, Value* mask, double softcap) {
    const DType dtype = q->type.dtype;
    const Dim batch = shape_of(kQ)[0], queries = length_of(kQ), shared = floor_divide(heads_of(kQ), heads_of(kK));
    const auto shaped = [&](Value* value, const Shape& shape) { return view(graph_, node_, value, shape, {node_}); };
    const auto times = [&](Value* value, double factor) {
      return add(ops::mul, {value, scalar(graph_, dtype, factor)});
    };
    const Shape rows{batch, heads_of(kK), shared * queries, keys()};
    q = shaped(q, Shape{batch, heads_of(kK), shared * queries, depth_of(kQ)});
    Value* turned = add(ops::transpose, {k}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
    Value* scores = times(add(ops::mat_mul, {q, turned}), scale() / softcap);
    scores = times(add(ops::tanh, {scores}), softcap);
    if (mask != nullptr) {
      const Shape& own = mask->type.shape;
      const bool one = own[1] == Dim(1);
      mask = shaped(mask, Shape{own[0], one ? Dim(1) : heads_of(kK), one ? Dim(1) : shared, own[2], own[3]});
      scores = add(ops::add, {shaped(scores, Shape{batch, heads_of(kK), shared, queries, keys()}), mask});
    }
    Value* shares = shaped(add(ops::softmax, {scores}, {{"axis", int64_t{-1}}}), rows);
    return shaped(add(ops::mat_mul, {shares, v}), Shape{batch, heads_of(kQ), queries, depth_of(kV)});
  }

  /// What is added to the scores, in four axes; `empty` where the mask may exclude all keys of a query.
  Value* find_mask(Value*& empty) {
    const DType dtype = node_->input(kQ)->type.dtype;
    Value* mask = node_->input(kMask);
    const bool finite = mask == nullptr || surely_finite(mask);
    if (mask != nullptr && mask->type.dtype == DType::boolean) mask = excluding(mask, dtype);
    if (mask != nullptr && mask->type.dtype != dtype)
      mask = add(ops::cast, {mask}, {{"to", std::string(name_of(dtype))}});
    if (depends_on_position()) {
      Value* places = position_mask(dtype);
      mask = mask == nullptr ? places : add(ops::add, {mask, places});
    }
    if (mask == nullptr) return nullptr;
    Shape shape = mask->type.shape, whole;
    for (size_t i = shape.rank(); i < 4; ++i) whole.push_back(Dim(1));
    for (const Dim& dim : shape) whole.push_back(dim);
    mask = view(graph_, node_, mask, whole, {node_});
    if (node_->input(kMask) == nullptr || (finite && node_->input(kMask)->type.dtype != DType::boolean)) return mask;
    Value* top = add(ops::reduce_max, {mask, integers(graph_, {3})});
    empty = add(ops::equal, {top, scalar(graph_, dtype, -kInfinity)});
    return add(ops::max, {mask, scalar(graph_, dtype, -largest_of(dtype))});
  }

  Graph& graph_;
  Node* node_;
  bool by_token_ = false;
};

}  // namespace

void lower_attention(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes())
    if (Lowering lowering(graph, node); node->is(ops::attention) && lowering.possible()) lowering.run();
  graph.erase_dead();
}

}  // namespace hone::passes
