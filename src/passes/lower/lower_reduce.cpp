// SPDX-License-Identifier: Apache-2.0
//
// A mean or maximum over all spatial axes has two spellings; kernels know GlobalAveragePool and GlobalMaxPool.
// Without kept sizes a View drops them. ReduceLogSumExp is written out: a sum of what a chain of pointwise operators gives.
#include <algorithm>
#include <limits>

#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

const OpDef* pool_for(const Node* node) {
  if (node->is(ops::reduce_mean)) return &ops::global_average_pool;
  if (node->is(ops::reduce_max)) return &ops::global_max_pool;
  return nullptr;
}

bool reduces_spatial_axes(const Node* node) {
  const size_t rank = node->input(0)->type.shape.rank();
  if (rank < 4 || rank > 5 || !is_float(node->input(0)->type.dtype) || node->input(1) == nullptr ||
      !node->input(1)->is_constant())
    return false;
  std::vector<size_t> axes;
  for (const int64_t axis : node->input(1)->constant->integers()) axes.push_back(normalize_axis(axis, rank));
  std::sort(axes.begin(), axes.end());
  if (axes.size() != rank - 2) return false;
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != i + 2) return false;
  return true;
}

/// log(sum(exp(x - m))) + m with the maximum for m, which keeps the powers below 1; an infinite one is left out, and gives itself.
void lower_log_sum_exp(Graph& graph, Node* node) {
  const auto made = [&](const OpDef& op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return insert_for(graph, node, op, std::move(inputs), std::move(attrs), {node})->output();
  };
  const auto over_axes = [&](const OpDef& op, Value* x) {
    Attrs attrs = node->attrs;
    attrs.set("keepdims", int64_t{1});
    return made(op, {x, node->input(1)}, std::move(attrs));
  };
  const auto number = [&](double value) { return scalar(graph, DType::f32, value); };
  Value *x = node->input(0), *top = over_axes(ops::reduce_max, x);
  Value* finite = made(ops::less, {made(ops::abs, {top}), number(std::numeric_limits<double>::infinity())});
  Value* shift = made(ops::where, {finite, top, number(0)});
  Value* sum = over_axes(ops::reduce_sum, made(ops::exp, {made(ops::sub, {x, shift})}));
  Value* result = made(ops::add, {made(ops::log, {sum}), shift});
  graph.replace(node->output(), view(graph, node, result, node->output()->type.shape, {node}));
}

bool has_known_axes(const Node* node) { return node->input(1) == nullptr || node->input(1)->is_constant(); }

}  // namespace

void lower_reduce(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes()) {
    if (node->is(ops::reduce_log_sum_exp) && node->input(0)->type.dtype == DType::f32 && has_known_axes(node)) {
      lower_log_sum_exp(graph, node);
      continue;
    }
    const OpDef* pool = pool_for(node);
    if (pool == nullptr || !reduces_spatial_axes(node)) continue;
    const Shape shape = node->output()->type.shape;
    Node* made = insert_for(graph, node, *pool, {node->input(0)}, {}, {node});
    graph.replace(node->output(), view(graph, node, made->output(), shape, {node}));
  }
}

}  // namespace hone::passes
