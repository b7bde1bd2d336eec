// SPDX-License-Identifier: Apache-2.0
//
// Layer and RMS normalisation over the last axis as exporters spell them out before their opset has the operator.
// Pow(_, 2) has become Mul(_, _) when these run (see simplify_arithmetic).
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
  const Shape& shape = match["x"]->type.shape;
  return value->constant->dims().size() <= shape.rank() && !value->constant->dims().empty() && shape[shape.rank() - 1] == Dim(value->constant->size()) &&
         value->constant->dims().back() == value->constant->size();
}

Value* row(const Match& match, std::string_view name) {
  const Tensor& tensor = *match[name]->constant;
  return tensor.dims().size() == 1 ? match[name] : match.graph().add_constant(tensor.reshaped({tensor.size()}), match[name]->name);
}

bool is_layer_norm(const Match& match) {
  return reduces_last_axis(match, "mean", "axes") && reduces_last_axis(match, "variance", "axes2") && splat(match["epsilon"]) && is_row(match, "scale") &&
         is_row(match, "bias");
}

void build_layer_norm(const Match& match) {
  const Attrs attrs{{"axis", int64_t{-1}}, {"epsilon", *splat(match["epsilon"])}};
  match.replace(match.add(ops::layer_normalization, {match["x"], row(match, "scale"), row(match, "bias")}, attrs)->output());
}

bool is_plain_rms_norm(const Match& match) { return reduces_last_axis(match, "mean", "axes") && splat(match["epsilon"]); }
bool is_rms_norm(const Match& match) { return is_plain_rms_norm(match) && is_row(match, "scale"); }

void build_rms_norm(const Match& match) {
  const Attrs attrs{{"axis", int64_t{-1}}, {"epsilon", *splat(match["epsilon"])}};
  match.replace(match.add(ops::rms_normalization, {match["x"], row(match, "scale")}, attrs)->output());
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
       %normal = Div(%d, %root)
       %scaled = Mul(%normal, %scale:const)
       %y = Add(%scaled, %bias:const))",
     .when = is_layer_norm,
     .build = build_layer_norm},
};

const Rewrite kRmsNorm[] = {
    {.name = "rms_norm",
     .match = R"(
       %square = Mul(%x, %x)
       %mean = ReduceMean(%square, %axes:const)
       %shifted = Add(%mean, %epsilon:const)
       %root = Sqrt(%shifted)
       %normal = Div(%x, %root)
       %y = Mul(%normal, %scale:const))",
     .when = is_rms_norm,
     .build = build_rms_norm},
};

}  // namespace

std::span<const Rewrite> fuse_layer_norm() { return kLayerNorm; }
std::span<const Rewrite> fuse_rms_norm() { return kRmsNorm; }

}  // namespace hone::passes
