// SPDX-License-Identifier: Apache-2.0
//
// What nodes are to the rules that form regions.
#pragma once

#include <algorithm>
#include <set>
#include <unordered_map>
#include <vector>

#include "builder/regions.h"
#include "ir/graph.h"
#include "ops/byte_scale.h"
#include "ops/ops.h"
#include "ops/weight_codes.h"

namespace hone {

/// Of nodes in a list.
using Positions = std::unordered_map<const Node*, size_t>;
/// These nodes with the inputs and outputs that the rest of the graph sees.
Region region_of(std::vector<Node*> nodes, const Graph& graph, const Positions& position);

/// What kernels compute in; arithmetic on f64 and integers is left to single nodes.
inline bool is_fusible(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

inline bool sums_integers(const Node& node) { return node.is(ops::mat_mul_integer) || node.is(ops::conv_integer); }

inline bool undoes(const Node& back, const Node& quantize) {
  return back.is(ops::dequantize_linear) && byte_scale(back) == byte_scale(quantize);
}

inline bool is_anchor(const Node& node) {
  if (sums_integers(node)) return true;
  for (const OpDef* op : {&ops::conv, &ops::conv_transpose, &ops::linear, &ops::quantized_linear, &ops::mat_mul})
    if (node.is(*op)) return is_fusible(node.output()->type.dtype);
  return false;
}

inline bool is_scalar(const Value& value) { return value.is_constant() && value.constant->size() == 1; }

/// Contents that follow from sizes alone: a region holds them itself instead of reading them.
inline bool is_shape_data(const Value& value) {
  return value.symbolic != nullptr && value.producer != nullptr && value.type.dtype == DType::i64;
}

inline bool is_mean(const Node& node) { return node.is(ops::global_average_pool) || node.is(ops::reduce_mean); }

inline bool is_one_pixel(const Value& value) {
  const Shape& shape = value.type.shape;
  return shape.rank() > 2 && std::all_of(shape.begin() + 2, shape.end(), [](const Dim& dim) { return dim == Dim(1); });
}

inline bool rounds_to_codes(const Node& node) { return node.is(ops::fake_quantize) || makes_codes(node); }

inline bool reads_constant(const Node& node) {
  return std::ranges::any_of(node.inputs, [](const Value* value) { return value->is_constant(); });
}

/// Of a matmul that has none, added to what was rounded.
inline bool is_late_bias(const Node& node, const Node& anchor) {
  return anchor.is(ops::linear) && anchor.input(2) == nullptr && node.is(ops::add) && reads_constant(node);
}

inline bool is_residual(const Node& node, const Value* value) {
  if (!node.is(ops::add)) return false;
  const Value* other = node.input(0) == value ? node.input(1) : node.input(0);
  return other != value && !other->is_constant() && other->type.shape == value->type.shape;
}

inline bool is_activation(const Node& node, const Value* value) {
  return std::ranges::all_of(node.inputs, [&](const Value* v) { return v == nullptr || v == value || is_scalar(*v); });
}

/// Whether the node reads and writes this one element type.
inline bool computes_in(const Node& node, DType dtype) {
  const auto same = [dtype](const Value* value) { return value == nullptr || value->type.dtype == dtype; };
  return std::all_of(node.inputs.begin(), node.inputs.end(), same) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), same);
}

/// What nodes read of others, but for constants of one element.
inline size_t count_inputs(const std::set<Node*>& inside) {
  std::set<const Value*> inputs;
  for (const Node* node : inside)
    for (const Value* value : node->inputs)
      if (value != nullptr && !inside.contains(value->producer) && !is_scalar(*value)) inputs.insert(value);
  return inputs.size();
}

/// A normalisation of rows, or a softmax of the last axis.
inline bool works_on_rows(const Node& node) {
  if (node.outputs.size() != 1) return false;
  if (node.is(ops::layer_normalization) || node.is(ops::rms_normalization)) return true;
  if (!node.is(ops::softmax)) return false;
  const size_t rank = node.input(0)->type.shape.rank();
  return normalize_axis(node.attrs.integer("axis"), rank) + 1 == rank;
}

/// Matmuls that one launch may make: weights of the same sizes, in few bits of the same blocks.
inline bool same_form(const Node& a, const Node& b) {
  if (a.op != b.op) return false;
  if (a.is(ops::quantized_linear))
    return a.input(1)->type.dtype == b.input(1)->type.dtype &&
           a.attrs.integer("block_size") == b.attrs.integer("block_size") &&
           a.attrs.text("table") == b.attrs.text("table");
  return a.input(1)->type == b.input(1)->type && a.attrs.integer("trans_w") == b.attrs.integer("trans_w") &&
         (a.input(2) == nullptr) == (b.input(2) == nullptr);
}

inline bool same_decoding(const Node& a, const Node& b) {
  return a.is(ops::decode) && b.is(ops::decode) && a.attrs.print() == b.attrs.print();
}

/// Several matmuls of one input, perhaps each with a Decode, and nothing else.
inline bool are_parallel(const std::vector<Node*>& nodes) {
  const auto count = [&](const OpDef& op) {
    return std::ranges::count_if(nodes, [&](const Node* node) { return node->is(op); });
  };
  const auto matmuls = std::ssize(nodes) - count(ops::decode);
  return matmuls > 1 && (count(ops::linear) == matmuls || count(ops::quantized_linear) == matmuls);
}

}  // namespace hone
