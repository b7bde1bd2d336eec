// SPDX-License-Identifier: Apache-2.0
//
// Products of bytes that no kernel sums up in integers, and whose sums become floats anyway, are products of floats: exact while
// a sum has at most 24 bits, off by its last bits beyond. Where the device has no integer kernels, or the weights are constants
// and no matrix, or have zero points that are not known.
//
// A device without any computes in f16 later, which such sums leave: where a scale follows, both operands take their part of it.
#include <algorithm>
#include <cmath>

#include "ops/byte_scale.h"
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/moved_elements.h"
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

bool is_one(const Value* value) { return value->type.shape.elements() == Dim(1); }

/// The scale with which a tensor of bytes was quantised, before its elements were moved; null where nothing says it.
Value* scale_of(const Value* bytes, const Value* zero) {
  const Node* node = bytes->producer;
  while (node != nullptr && !node->is(ops::quantize_linear) && moves_elements(*node)) node = node->input(0)->producer;
  if (node == nullptr || !node->is(ops::quantize_linear)) return nullptr;
  const std::optional<ByteScale> scale = byte_scale(*node);
  if (!scale || (zero == nullptr ? scale->zero != 0 : !is_splat(zero, scale->zero))) return nullptr;
  return node->input(1);
}

/// Sums that become floats, perhaps behind an addition, and are multiplied by scales then: the product of what x and w are scaled by.
/// A device without integer kernels computes in f16 later, which the sums of codes leave: both operands take their part of the scale.
class ScaledProduct {
 public:
  ScaledProduct(Graph& graph, Node* node, Node* addition, Node* cast)
      : graph_(graph), node_(node), addition_(addition), cast_(cast) {}

  /// False where the scales cannot be told apart, or w is neither constant nor of one scale.
  bool lower() {
    if (!used_once(graph_, cast_->output())) return false;
    mul_ = cast_->output()->uses[0].node;
    if (!mul_->is(ops::mul) || mul_->output()->type.shape != cast_->output()->type.shape) return false;
    scale_ = mul_->input(mul_->input(0) == cast_->output() ? 1 : 0);
    if (!find_scales()) return false;
    for (const size_t zero : {size_t{2}, size_t{3}})
      if (const Value* value = node_->input(zero);
          value != nullptr && !is_one(value) && (zero == 2 || !w()->is_constant()))
        return false;
    const bool conv = node_->is(ops::conv_integer);
    Node* product =
        insert_for(graph_, mul_, conv ? ops::conv : ops::mat_mul,
                   {dequantized(x(), x_scale_, node_->input(2)), weights()}, conv ? node_->attrs : Attrs{}, parts());
    Value* result = product->output();
    if (addition_ != nullptr) result = add(ops::add, {result, add(ops::mul, {addend(), scale_})});
    graph_.replace(mul_->output(), result);
    return true;
  }

 private:
  Value* x() const { return node_->input(0); }
  Value* w() const { return node_->input(1); }
  std::vector<const Node*> parts() const { return {node_, cast_, mul_}; }
  Value* add(const OpDef& op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return insert_for(graph_, mul_, op, std::move(inputs), std::move(attrs), parts())->output();
  }

  bool find_scales() {
    const Node* factors = producer(scale_, ops::mul);
    if (!scale_->is_constant() && factors != nullptr) {
      const size_t one = is_one(factors->input(0)) && !factors->input(0)->is_constant() ? 0 : 1;
      x_scale_ = factors->input(one), w_scale_ = factors->input(1 - one);
      return is_one(x_scale_) && w_scale_->is_constant() && w()->is_constant() && fits_filters(*w_scale_);
    }
    if (!scale_->is_constant() || !fits_filters(*scale_)) return false;
    x_scale_ = scale_of(x(), node_->input(2));
    if (x_scale_ == nullptr) x_scale_ = scalar(graph_, DType::f32, 1);
    if (w()->is_constant()) w_scale_ = add(ops::div, {scale_, x_scale_});
    else w_scale_ = scale_of(w(), node_->input(3));
    return w_scale_ != nullptr && (w()->is_constant() || are_factors());
  }
  /// One, or one of each filter (axis 1 of a convolution's result) or column.
  bool fits_filters(const Value& scale) const {
    const Shape& shape = scale.type.shape;
    const size_t rank = cast_->output()->type.shape.rank(), back = node_->is(ops::conv_integer) ? rank - 1 : 1;
    return is_one(&scale) || (shape.rank() >= back && shape.elements() == shape[shape.rank() - back]);
  }
  bool are_factors() const {
    constexpr double kSame = 1e-5;  // relative: products of two scales, rounded once
    if (!is_one(scale_)) return false;
    const double wanted = numbers_of(*scale_->constant)[0],
                 found = numbers_of(*x_scale_->constant)[0] * numbers_of(*w_scale_->constant)[0];
    return std::fabs(found - wanted) <= kSame * std::fabs(wanted);
  }

  Value* dequantized(Value* bytes, Value* scale, Value* zero) {
    std::vector<Value*> inputs{bytes, scale};
    if (zero != nullptr) inputs.push_back(zero);
    return add(ops::dequantize_linear, std::move(inputs));
  }
  Value* weights() {
    if (!w()->is_constant()) return dequantized(w(), w_scale_, node_->input(3));
    const bool conv = node_->is(ops::conv_integer);
    const size_t rank = w()->type.shape.rank();
    Value *shifted = without_zero(graph_, node_, w(), node_->input(3), conv ? rank : 1), *scale = w_scale_;
    if (conv && !is_one(scale)) {
      Shape filters(std::vector<Dim>(rank, Dim(1)));
      filters[0] = scale->type.shape.elements();
      scale = view(graph_, mul_, scale, filters, parts());
    }
    return add(ops::mul, {shifted, scale});
  }
  Value* addend() {
    Value* given = addition_->input(addition_->input(0)->is_constant() ? 0 : 1);
    return add(ops::cast, {given}, {{"to", std::string(kFloat)}});
  }

  Graph& graph_;
  Node *node_, *addition_, *cast_, *mul_ = nullptr;
  Value *scale_ = nullptr, *x_scale_ = nullptr, *w_scale_ = nullptr;
};

void lower(Graph& graph, Node* node, bool scales) {
  HONE_ASSERT(node->is(ops::conv_integer) || node->attrs.integer("trans_b") == 0,
              "{}: columns are turned where a kernel takes them", node->name);
  Node* addition = addition_to(graph, *node);
  const std::vector<Node*> casts = casts_of(graph, addition == nullptr ? *node : *addition);
  if (casts.empty()) return;
  if (scales && casts.size() == 1 && ScaledProduct(graph, node, addition, casts[0]).lower()) return;
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
      lower(graph, node, !context.byte_matmuls);
}

}  // namespace hone::passes
