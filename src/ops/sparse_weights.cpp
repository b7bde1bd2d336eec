// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse_weights.h"

#include <algorithm>
#include <cstring>

#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

constexpr int64_t kGroup = 4, kKept = 2;

}  // namespace

bool is_sparse(const Tensor& weights, size_t channel_axis, double zero) {
  const AxisView view(weights.dims(), channel_axis);
  if (view.length < kGroup) return false;
  const std::vector<double> values = read_doubles(weights);
  for (int64_t outer = 0; outer < view.outer; ++outer)
    for (int64_t channel = 0; channel < view.length; channel += kGroup)
      for (int64_t inner = 0; inner < view.inner; ++inner) {
        int64_t used = 0;
        for (int64_t i = channel; i < std::min(channel + kGroup, view.length); ++i)
          used += values[static_cast<size_t>((outer * view.length + i) * view.inner + inner)] != zero;
        if (used > kKept) return false;
      }
  return true;
}

Tensor pruned(const Tensor& weights, size_t channel_axis, double zero) {
  const AxisView view(weights.dims(), channel_axis);
  TensorBuilder builder(weights.dtype(), weights.dims());
  std::memcpy(builder.bytes(), weights.bytes().data(), weights.bytes().size());
  const Tensor element = scalar_of(weights.dtype(), zero);
  const size_t size = size_of(weights.dtype());
  for (int64_t i = 0; i < weights.size(); ++i)
    if (i / view.inner % view.length % kGroup >= kKept)
      std::memcpy(builder.bytes() + static_cast<size_t>(i) * size, element.bytes().data(), size);
  return builder.finish();
}

std::optional<size_t> channel_axis_of_weights(const Node& node) {
  const bool conv = node.is(ops::conv);
  if ((!conv && !node.is(ops::linear)) || !node.input(1)->is_constant()) return {};
  return conv || node.attrs.integer("trans_w") != 0 ? 1 : 0;
}

bool have_sparse_weights(std::span<const Node* const> nodes) {
  bool found = false;
  for (const Node* node : nodes) {
    const std::optional<size_t> axis = channel_axis_of_weights(*node);
    if (!axis) continue;
    if (!is_sparse(*node->input(1)->constant, *axis)) return false;
    found = true;
  }
  return found;
}

void prune_weights(Graph& graph) {
  for (const Node* node : graph.nodes())
    if (const std::optional<size_t> axis = channel_axis_of_weights(*node))
      node->input(1)->constant = pruned(*node->input(1)->constant, *axis);
}

}  // namespace hone
