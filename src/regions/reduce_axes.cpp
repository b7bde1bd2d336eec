// SPDX-License-Identifier: Apache-2.0

#include "regions/reduce_axes.h"

#include <algorithm>

#include "ops/ops.h"
#include "regions/layout_offers.h"
#include "regions/region_match.h"

namespace hone {
namespace {

bool reduces_all_spatial(const Dims& axes, size_t rank) {
  for (size_t axis = 2; axis < rank; ++axis)
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) == axes.end()) return false;
  return rank >= 3 && rank <= 5;
}

}  // namespace

std::optional<Dims> reduced_axes(const Node& node) {
  const size_t rank = node.input(0)->type.shape.rank();
  Dims axes;
  const bool global =
      node.is(ops::global_average_pool) || node.is(ops::global_max_pool) || node.is(ops::global_lp_pool);
  const Value* operand = global ? nullptr : node.input(1);
  if (operand != nullptr && !operand->is_constant()) return std::nullopt;
  if (operand != nullptr)
    for (const int64_t axis : operand->constant->integers())
      axes.push_back(static_cast<int64_t>(normalize_axis(axis, rank)));
  if (axes.empty() && !global && node.attrs.integer("noop_with_empty_axes") != 0) return axes;
  if (axes.empty())
    for (size_t axis = global ? 2 : 0; axis < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
  return axes;
}

void offer_reductions(const Problem& problem, const Dims& axes, std::string_view source, Candidates& out) {
  offer_layouts(problem, source, "reduce", out);
  const Node& node = *problem.region.nodes().back();
  const size_t rank = node.input(0)->type.shape.rank();
  if (!reduces_all_spatial(axes, rank) || node.output()->type.shape.rank() == rank) return;
  std::vector<Layout> in(problem.region.inputs().size(), Layout::linear);
  in[0] = Layout::channels_last;
  out.offer({std::string(source), "reduce", {}, std::move(in), {Layout::linear}});
}

std::vector<AxisRun> merged_axes(const ConcreteType& type, const Dims& reduced) {
  const Dims dims = physical_dims(type), strides = strides_of(dims);
  std::vector<bool> flags(dims.size(), false);
  for (const int64_t axis : reduced) flags[physical_axis(normalize_axis(axis, dims.size()), type)] = true;
  std::vector<AxisRun> axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (!axes.empty() && axes.back().reduced == flags[i])
      axes.back() = {axes.back().size * dims[i], strides[i], flags[i]};
    else axes.push_back({dims[i], strides[i], flags[i]});
  }
  return axes;
}

}  // namespace hone
