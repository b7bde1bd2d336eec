// SPDX-License-Identifier: Apache-2.0
//
// A mean or maximum over all spatial axes has two spellings; kernels know GlobalAveragePool and GlobalMaxPool.
// Without kept sizes a View drops them.
#include <algorithm>

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

}  // namespace

void lower_reduce(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes()) {
    const OpDef* pool = pool_for(node);
    if (pool == nullptr || !reduces_spatial_axes(node)) continue;
    const Shape shape = node->output()->type.shape;
    Node* made = insert_for(graph, node, *pool, {node->input(0)}, {}, {node});
    graph.replace(node->output(), view(graph, node, made->output(), shape, {node}));
  }
}

}  // namespace hone::passes
