// SPDX-License-Identifier: Apache-2.0
//
// Layer and RMS normalisation over the last axis as exporters spell them out before their opset has the operator.
// Pow(_, 2) has become Mul(_, _) when these run (see simplify_arithmetic). The division ends the normalisation; what is
// multiplied or added behind it joins the operator's own scale and bias.
#include "base/limits.h"
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

bool reduces_last_axis(const Match& match, std::string_view mean, std::string_view axes) {
  const Node* node = match.node(mean);
  const Tensor& list = *match[axes]->constant;
  const size_t rank = node->input(0)->type.shape.rank();
  return list.size() == 1 && node->attrs.integer("keepdims") == 1 && normalize_axis(list.integer(0), rank) == rank - 1;
}

/// A vector as long as the last axis, possibly with leading sizes of 1.
bool is_row(const Match& match, std::string_view name) {
  const Value* value = match[name];
  const Shape& shape = match.root()->output()->type.shape;
  return value->constant->dims().size() <= shape.rank() && !value->constant->dims().empty() &&
         shape[shape.rank() - 1] == Dim(value->constant->size()) &&
         value->constant->dims().back() == value->constant->size();
}

bool normalizes_last_axis(const Node* norm) {
  const size_t rank = norm->input(0)->type.shape.rank();
  return normalize_axis(norm->attrs.integer("axis"), rank) == rank - 1 &&
         norm->output()->type.shape[rank - 1].is_constant();
}

Value* row_of(const Match& match, double number) {
  const TensorType& type = match["x"]->type;
  const int64_t length = type.shape[type.shape.rank() - 1].value();
  return match.graph().add_constant(
      tensor_from(type.dtype, {length}, std::vector<double>(static_cast<size_t>(length), number)));
}

/// A row that can be a constant.
bool has_known_row(const Match& match) {
  const Shape& shape = match["x"]->type.shape;
  return shape.rank() > 0 && splat(match["epsilon"]) && shape[shape.rank() - 1].is_constant() &&
         shape[shape.rank() - 1].value() <= kMaxFoldedBytes / 8 && is_float(match["x"]->type.dtype);
}

Attrs norm_attrs(const Match& match) { return {{"axis", int64_t{-1}}, {"epsilon", *splat(match["epsilon"])}}; }

bool is_layer_norm(const Match& match) {
  return has_known_row(match) && reduces_last_axis(match, "mean", "axes") &&
         reduces_last_axis(match, "variance", "axes2");
}
void build_layer_norm(const Match& match) {
  match.replace(match.add(ops::layer_normalization, {match["x"], row_of(match, 1)}, norm_attrs(match))->output());
}

bool is_rms_norm(const Match& match) { return has_known_row(match) && reduces_last_axis(match, "mean", "axes"); }
void build_rms_norm(const Match& match) {
  match.replace(match.add(ops::rms_normalization, {match["x"], row_of(match, 1)}, norm_attrs(match))->output());
}

// The scale and bias behind a normalisation ─────────────────────────────────────────────────────────────────────────

bool takes_row(const Match& match) { return normalizes_last_axis(match.node("n")) && is_row(match, "w"); }

Value* combined_row(const Match& match, const Value* present, bool multiply) {
  std::vector<double> numbers = numbers_of(*match["w"]->constant);
  if (present != nullptr) {
    const std::vector<double> others = numbers_of(*present->constant);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = multiply ? numbers[i] * others[i] : numbers[i] + others[i];
  }
  return match.graph().add_constant(
      tensor_from(match["w"]->type.dtype, {static_cast<int64_t>(numbers.size())}, numbers), match["w"]->name);
}

void scale_norm(const Match& match) {
  const Node* norm = match.node("n");
  match.replace(match.add(*norm->op, {match["x"], combined_row(match, match["s"], true)}, norm->attrs)->output());
}

void scale_and_shift_norm(const Match& match) {
  const Node* norm = match.node("n");
  match.replace(match
                    .add(*norm->op,
                         {match["x"], combined_row(match, match["s"], true), combined_row(match, match["b"], true)},
                         norm->attrs)
                    ->output());
}

void shift_norm(const Match& match) {
  const Node* norm = match.node("n");
  match.replace(match.add(*norm->op, {match["x"], match["s"], combined_row(match, norm->input(2), false)}, norm->attrs)
                    ->output());
}

const Rewrite kLayerNorm[] = {
    {.name = "layer_norm",
     .match = R"(
       %mean = ReduceMean(%x, %axes:const)
       %d = Sub(%x, %mean)
       %square = Mul(%d, %d)
       %variance = ReduceMean(%square, %axes2:const)
       %shifted = Add(%variance, %epsilon:const)
       %root = Sqrt(%shifted)
       %y = Div(%d, %root))",
     .when = is_layer_norm,
     .build = build_layer_norm},
    {.name = "layer_norm_scale",
     .match = "%n = LayerNormalization(%x, %s:const, _)\n%y = Mul(%n, %w:const)",
     .when = takes_row,
     .build = scale_norm},
    {.name = "layer_norm_scale_bias",
     .match = "%n = LayerNormalization(%x, %s:const, %b:const)\n%y = Mul(%n, %w:const)",
     .when = takes_row,
     .build = scale_and_shift_norm},
    {.name = "layer_norm_bias",
     .match = "%n = LayerNormalization(%x, %s:const, _)\n%y = Add(%n, %w:const)",
     .when = takes_row,
     .build = shift_norm},
    {.name = "layer_norm_more_bias",
     .match = "%n = LayerNormalization(%x, %s:const, %b:const)\n%y = Add(%n, %w:const)",
     .when = takes_row,
     .build = shift_norm},
};

const Rewrite kRmsNorm[] = {
    {.name = "rms_norm",
     .match = R"(
       %square = Mul(%x, %x)
       %mean = ReduceMean(%square, %axes:const)
       %shifted = Add(%mean, %epsilon:const)
       %root = Sqrt(%shifted)
       %y = Div(%x, %root))",
     .when = is_rms_norm,
     .build = build_rms_norm},
    {.name = "rms_norm_scale",
     .match = "%n = RMSNormalization(%x, %s:const)\n%y = Mul(%n, %w:const)",
     .when = takes_row,
     .build = scale_norm},
};

}  // namespace

std::span<const Rewrite> fuse_layer_norm() { return kLayerNorm; }
std::span<const Rewrite> fuse_rms_norm() { return kRmsNorm; }

}  // namespace hone::passes
