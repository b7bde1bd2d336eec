// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot-product attention. fuse_attention starts at each Softmax and walks up through masks and scales to the
// matmul of queries and keys, and down through the guard against empty rows to the matmul with the values; scales on
// any of the three sides multiply up. absorb_heads takes in keys and values that are repeated for groups of heads, and
// absorb_transpose the transposes between [batch, sequence, heads, depth] and [batch, heads, sequence, depth].
#include <algorithm>
#include <array>
#include <cmath>

#include "ir/op.h"
#include "ops/ops.h"
#include "passes/axes.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

/// A mask value from which on a masked score counts as minus infinity whatever it was.
constexpr double kMaskedOut = -1e9;

struct Attention {
  Value* q = nullptr;
  Value* k_transposed = nullptr;
  Value* v = nullptr;
  Value* mask = nullptr;
  Value* window_mask = nullptr;  // [1, windows, …], repeated for each of `batch` images
  Dim batch;
  double scale = 1;
  Node* end = nullptr;  // the matmul with the values
  std::vector<const Node*> parts;
};

/// Factor of a Mul or Div by a number, and the other operand.
struct Scaled {
  Value* value;
  double factor;
};
std::optional<Scaled> scaled(const Value* value) {
  if (const Node* node = producer(value, ops::mul)) {
    for (size_t i = 0; i < 2; ++i)
      if (const std::optional<double> factor = splat(node->input(i)); factor && node->input(1 - i)->type == value->type)
        return Scaled{node->input(1 - i), *factor};
  } else if (const Node* quotient = producer(value, ops::div)) {
    if (const std::optional<double> divisor = splat(quotient->input(1));
        divisor && *divisor != 0 && quotient->input(0)->type == value->type)
      return Scaled{quotient->input(0), 1 / *divisor};
  }
  return std::nullopt;
}

Shape with_leading_ones(const Shape& shape, size_t rank) {
  Shape result;
  for (size_t i = shape.rank(); i < rank; ++i) result.push_back(Dim(1));
  for (const Dim& dim : shape) result.push_back(dim);
  return result;
}

class Finder {
 public:
  Finder(Graph& graph, Node* softmax) : graph_(graph), softmax_(softmax) {}

  std::optional<Attention> find() {
    const Value* result = softmax_->output();
    const size_t rank = result->type.shape.rank();
    if (rank < 3 || rank > 4 || normalize_axis(softmax_->attrs.integer("axis"), rank) != rank - 1 ||
        !is_float(result->type.dtype))
      return std::nullopt;
    if (!find_scores(softmax_->input(0)) || !finish_mask() || !find_values()) return std::nullopt;
    found_.q = unscaled(found_.q);
    found_.k_transposed = unscaled(found_.k_transposed);
    return sizes_fit(rank) ? std::optional(found_) : std::nullopt;
  }

 private:
  /// Upwards from the Softmax to the matmul of queries and keys.
  bool find_scores(Value* value) {
    for (int depth = 0; depth < 6; ++depth) {
      if (!used_once(graph_, value) || value->producer == nullptr) return false;
      Node* node = value->producer;
      found_.parts.insert(found_.parts.begin(), node);
      if (node->is(ops::mat_mul)) {
        found_.q = node->input(0);
        found_.k_transposed = node->input(1);
        return true;
      }
      if (const std::optional<Scaled> inner = scaled(value)) {
        found_.scale *= inner->factor;
        value = inner->value;
        continue;
      }
      if (found_.scale != 1) return false;  // the scale would apply to the mask too
      Value* scores = node->is(ops::add)     ? take_added_mask(node)
                      : node->is(ops::where) ? take_selected_mask(node)
                      : node->is(ops::view)  ? take_window_mask(node)
                                             : nullptr;
      if (scores == nullptr) return false;
      value = scores;
    }
    return false;
  }

  /// Whether the scores are computed from this value: the matmul is behind scales and masks.
  static bool leads_to_matmul(const Value* value, int depth = 0) {
    if (depth > 4 || value->producer == nullptr) return false;
    const Node* node = value->producer;
    if (node->is(ops::mat_mul)) return true;
    if (const std::optional<Scaled> inner = scaled(value)) return leads_to_matmul(inner->value, depth + 1);
    if (node->is(ops::add))
      return leads_to_matmul(node->input(0), depth + 1) || leads_to_matmul(node->input(1), depth + 1);
    return (node->is(ops::view) || node->is(ops::where)) &&
           leads_to_matmul(node->input(node->is(ops::where) ? 1 : 0), depth + 1);
  }

  void add_mask(Value* mask) {
    if (found_.mask != nullptr)
      mask = insert_for(graph_, softmax_, ops::add, {mask, found_.mask}, {}, {softmax_})->output();
    found_.mask = mask;
  }

  /// Joins the window mask with the others while it is small, then repeats it for the batch.
  bool finish_mask() {
    Value* mask = found_.window_mask;
    if (mask == nullptr) return true;
    if (found_.mask != nullptr) {
      const Shape other = with_leading_ones(found_.mask->type.shape, mask->type.shape.rank() - 1);
      if (other[0] != Dim(1)) return false;
      Value* aligned = view(graph_, softmax_, found_.mask, with_leading_ones(other, other.rank() + 1), {softmax_});
      mask = insert_for(graph_, softmax_, ops::add, {mask, aligned}, {}, {softmax_})->output();
    }
    Shape repeated = mask->type.shape, merged;
    repeated[0] = found_.batch;
    merged.push_back(repeated[0] * repeated[1]);
    for (size_t i = 2; i < repeated.rank(); ++i) merged.push_back(repeated[i]);
    if (repeated != mask->type.shape) {
      const Attrs attrs{{"values", texts_of(repeated)},
                        {"dims", std::vector<int64_t>{static_cast<int64_t>(repeated.rank())}}};
      Value* sizes = insert_for(graph_, softmax_, ops::symbolic_constant, {}, attrs, {softmax_})->output();
      mask = insert_for(graph_, softmax_, ops::expand, {mask, sizes}, {}, {softmax_})->output();
    }
    found_.mask = view(graph_, softmax_, mask, merged, {softmax_});
    return true;
  }

  Value* take_added_mask(const Node* add) {
    const size_t at = !add->input(0)->is_constant() && leads_to_matmul(add->input(0)) ? 0 : 1;
    if (!leads_to_matmul(add->input(at)) || add->input(at)->type != add->output()->type) return nullptr;
    add_mask(add->input(1 - at));
    return add->input(at);
  }

  /// View(Add(View(scores), mask)): a mask per window, added with the windows on an axis of their own behind the batch.
  Value* take_window_mask(Node* outer) {
    const Node* add = sole_producer(graph_, outer->input(0), ops::add);
    if (add == nullptr) return nullptr;
    const Shape &windows = add->output()->type.shape, &result = outer->output()->type.shape;
    if (windows.rank() != result.rank() + 1 || windows[0] * windows[1] != result[0] || found_.window_mask != nullptr)
      return nullptr;
    for (size_t i = 1; i < result.rank(); ++i)
      if (windows[i + 1] != result[i]) return nullptr;
    for (size_t at : {0, 1}) {
      const Node* inner = sole_producer(graph_, add->input(at), ops::view);
      if (inner == nullptr || inner->input(0)->type.shape != result || inner->output()->type.shape != windows) continue;
      Value* mask = add->input(1 - at);
      if (mask->type.shape.rank() != windows.rank() || mask->type.shape[0] != Dim(1)) return nullptr;
      found_.parts.insert(found_.parts.begin(), {inner, add});
      found_.window_mask = mask;
      found_.batch = windows[0];
      return inner->input(0);
    }
    return nullptr;
  }

  /// Where(keep, scores, -inf) or Where(drop, -inf, scores): the same as adding 0 or -inf.
  Value* take_selected_mask(Node* where) {
    for (size_t at : {1, 2}) {
      const std::optional<double> fill = splat(where->input(3 - at));
      if (!fill || *fill > kMaskedOut || !leads_to_matmul(where->input(at)) ||
          where->input(at)->type != where->output()->type)
        continue;
      Value* zero = scalar(graph_, where->output()->type.dtype, 0);
      Value* fill_value = scalar(graph_, where->output()->type.dtype, *fill);
      const std::vector<Value*> inputs{where->input(0), at == 1 ? zero : fill_value, at == 1 ? fill_value : zero};
      add_mask(insert_for(graph_, where, ops::where, inputs, {}, {where})->output());
      return where->input(at);
    }
    return nullptr;
  }

  /// Downwards: Softmax, perhaps Where(IsNaN(p), 0, p), then the matmul with the values.
  bool find_values() {
    found_.parts.push_back(softmax_);
    const Value* weights = softmax_->output();
    if (weights->uses.size() == 2 && !graph_.is_output(weights)) {
      const Node* guard = nullptr;
      for (const Use& use : weights->uses)
        if (use.node->is(ops::where) && use.index == 2) guard = use.node;
      if (guard == nullptr || !is_splat(guard->input(1), 0)) return false;
      // Where a whole row of the mask may be minus infinity, the guard does something that a fused attention would not.
      if (found_.mask != nullptr && !surely_finite(found_.mask)) return false;
      const Node* test = sole_producer(graph_, guard->input(0), ops::is_nan);
      if (test == nullptr || test->input(0) != weights) return false;
      found_.parts.push_back(test);
      found_.parts.push_back(guard);
      weights = guard->output();
    }
    if (!used_once(graph_, weights)) return false;
    const Use use = weights->uses.front();
    if (!use.node->is(ops::mat_mul) || use.index != 0) return false;
    found_.end = use.node;
    found_.v = use.node->input(1);
    found_.parts.push_back(use.node);
    return true;
  }

  Value* unscaled(Value* value) {
    while (const std::optional<Scaled> inner = scaled(value)) {
      if (!used_once(graph_, value)) break;
      found_.parts.insert(found_.parts.begin(), value->producer);
      found_.scale *= inner->factor;
      value = inner->value;
    }
    return value;
  }

  bool sizes_fit(size_t rank) const {
    const Shape &q = found_.q->type.shape, &k = found_.k_transposed->type.shape, &v = found_.v->type.shape;
    if (q.rank() != rank || k.rank() != rank || v.rank() != rank) return false;
    for (size_t i = 0; i + 2 < rank; ++i)
      if (q[i] != k[i] || q[i] != v[i]) return false;
    for (const Shape* shape : {&q, &k, &v})
      if (!follows_from_inputs(graph_, *shape)) return false;
    return found_.mask == nullptr || found_.mask->type.shape.rank() <= rank;
  }

  Graph& graph_;
  Node* softmax_;
  Attention found_;
};

/// The keys [.., S, D] from the operand [.., D, S] of the matmul.
Value* keys(Graph& graph, Attention& found) {
  Value* value = found.k_transposed;
  const size_t rank = value->type.shape.rank();
  Permutation swap(rank);
  for (size_t i = 0; i < rank; ++i) swap[i] = static_cast<int64_t>(i);
  std::swap(swap[rank - 1], swap[rank - 2]);
  if (Node* inner = producer(value, ops::transpose)) {
    swap = compose(permutation_of(inner), swap);
    value = inner->input(0);
    found.parts.push_back(inner);  // what is left of it, the attention does
    if (is_identity(swap)) return value;
  }
  return insert_for(graph, found.end, ops::transpose, {value}, {{"perm", swap}}, {found.end})->output();
}

void replace_attention(Graph& graph, Attention found, const PassContext& context) {
  const auto as_rank4 = [&](Value* value) {
    return view(graph, found.end, value, with_leading_ones(value->type.shape, 4), {found.end});
  };
  std::vector<Value*> inputs{as_rank4(found.q), as_rank4(keys(graph, found)), as_rank4(found.v)};
  if (found.mask != nullptr) inputs.push_back(as_rank4(found.mask));
  const Attrs attrs{{"scale", found.scale}, {"layout", std::string("bhsd")}};
  Node* fused = insert_for(graph, found.end, ops::scaled_dot_product_attention, std::move(inputs), attrs, found.parts);
  context.report_fusion(found.parts.front()->name, found.end->name);
  graph.replace(found.end->output(),
                view(graph, found.end, fused->output(), found.end->output()->type.shape, {found.end}));
  graph.erase_dead();
}

/// What is repeated: View(Expand(View(x))) that copies each of [B, H, S, D]'s heads `repeats` times.
Value* ungrouped(Graph& graph, Node* position, Value* value) {
  const Node* merge = producer(value, ops::view);
  const Node* expand = merge == nullptr ? nullptr : producer(merge->input(0), ops::expand);
  if (expand == nullptr) return nullptr;
  const Shape &from = expand->input(0)->type.shape, &to = expand->output()->type.shape, &result = value->type.shape;
  if (from.rank() != 5 || to.rank() != 5 || result.rank() != 4 || from[2] != Dim(1)) return nullptr;
  if (from[0] != to[0] || from[1] != to[1] || from[3] != to[3] || from[4] != to[4]) return nullptr;
  if (result != Shape({to[0], to[1] * to[2], to[3], to[4]})) return nullptr;
  return view(graph, position, expand->input(0), Shape({from[0], from[1], from[3], from[4]}), {merge});
}

const Permutation kSwapHeads{0, 2, 1, 3};

/// The value [B, S, H, D] that [B, H, S, D] was transposed from, or null.
Value* before_transpose(Graph& graph, Node* position, Value* value) {
  const Shape shape = permuted(value->type.shape, kSwapHeads);
  if (keeps_order(value->type.shape, kSwapHeads)) return view(graph, position, value, shape, {position});
  const Node* inner = producer(value, ops::transpose);
  if (inner == nullptr) return nullptr;
  // Undoing the swap must give back the order that the axes had before the transpose.
  const Permutation restored = compose(permutation_of(inner), kSwapHeads);
  if (!keeps_order(inner->input(0)->type.shape, restored)) return nullptr;
  return view(graph, position, inner->input(0), shape, {inner});
}

/// The transpose that swaps heads and sequence of an attention's result, and what is done to each element before it.
struct Behind {
  std::vector<Node*> steps;
  Node* transpose;
};

/// Of one operand and numbers.
bool is_step(const Node* node) {
  return node->op->is_pointwise() && node->outputs.size() == 1 &&
         std::ranges::all_of(node->inputs.begin() + 1, node->inputs.end(), [](const Value* value) {
           return value == nullptr || (value->is_constant() && value->constant->size() == 1);
         });
}

std::optional<Behind> transpose_behind(const Graph& graph, const Node* attention) {
  Behind behind{};
  for (const Value* result = attention->output(); used_once(graph, result); result = behind.steps.back()->output()) {
    const Use& use = result->uses.front();
    behind.transpose = use.node;
    if (use.node->is(ops::transpose))
      return same_order(result->type.shape, permutation_of(use.node), kSwapHeads) ? std::optional(behind)
                                                                                  : std::nullopt;
    if (use.index != 0 || !is_step(use.node)) return std::nullopt;
    behind.steps.push_back(use.node);
  }
  return std::nullopt;
}

bool is_head_major(const Node* node) {
  return node->is(ops::scaled_dot_product_attention) && node->attrs.text("layout") == "bhsd";
}

}  // namespace

void fuse_attention(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    if (node->op == nullptr || !node->is(ops::softmax)) continue;
    if (const std::optional<Attention> found = Finder(graph, node).find()) replace_attention(graph, *found, context);
  }
}

void absorb_heads(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes()) {
    if (node->op == nullptr || !is_head_major(node)) continue;
    Value* k = ungrouped(graph, node, node->input(1));
    Value* v = ungrouped(graph, node, node->input(2));
    if (k == nullptr || v == nullptr || k->type.shape[1] != v->type.shape[1]) continue;
    graph.set_input(node, 1, k);
    graph.set_input(node, 2, v);
  }
  graph.erase_dead();
}

void absorb_transpose(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    if (node->op == nullptr || !is_head_major(node)) continue;
    const std::optional<Behind> behind = transpose_behind(graph, node);
    if (!behind) continue;
    std::array<Value*, 3> operands{};
    for (size_t i = 0; i < 3; ++i) operands[i] = before_transpose(graph, node, node->input(i));
    if (std::find(operands.begin(), operands.end(), nullptr) != operands.end()) continue;
    std::vector<Value*> inputs(operands.begin(), operands.end());
    if (node->input(3) != nullptr) inputs.push_back(node->input(3));
    Attrs attrs = node->attrs;
    attrs.set("layout", std::string("bshd"));
    Node* outer = behind->transpose;
    context.report_fusion(node->name, outer->name);
    Node* fused = insert_for(graph, outer, *node->op, std::move(inputs), std::move(attrs), {node});
    Value* result = view(graph, outer, fused->output(), outer->output()->type.shape, {outer});
    for (Node* step : behind->steps) {
      inputs = step->inputs;
      inputs[0] = result;
      result = insert_for(graph, outer, *step->op, std::move(inputs), step->attrs, {step})->output();
    }
    graph.replace(outer->output(), result);
    graph.erase_dead();
  }
}

}  // namespace hone::passes
