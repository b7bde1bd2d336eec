// SPDX-License-Identifier: Apache-2.0
#include "passes/moved_elements.h"

#include <algorithm>

#include "ir/op.h"
#include "ops/ops.h"
#include "ops/window.h"
#include "passes/edit.h"

namespace hone {
namespace {

bool is_given(const Value* value) { return value == nullptr || value->is_constant() || value->symbolic != nullptr; }

/// A Pad's kind that adds nothing but zeros or elements of its own.
bool pads_with_zero(const Node& node) {
  const std::optional<double> filled = splat(node.input(2));
  return node.attrs.text("mode") != "constant" || node.input(2) == nullptr || (filled && *filled == 0);
}

/// Every window of the MaxPool has an element inside, and nobody wants to know where.
bool takes_maxima(const Node& node) {
  if (!node.is(ops::max_pool) || node.outputs.size() > 1) return false;
  const size_t rank = node.input(0)->type.shape.rank();
  if (rank < 3) return false;
  const WindowAttrs window(node.attrs, rank - 2, {});
  for (size_t i = 0; i < window.pads.size(); ++i)
    if (window.pads[i] < 0 || window.pads[i] >= window.kernel[i % (rank - 2)]) return false;
  return std::ranges::all_of(window.dilations, [](int64_t dilation) { return dilation == 1; });
}

/// A Resize that repeats every element, which is a copy; other kinds have kernels for floats alone.
bool repeats_elements(const Node& node) {
  if (!node.is(ops::resize) || node.attrs.text("mode") != "nearest") return false;
  const std::string &mode = node.attrs.text("coordinate_transformation_mode"),
                    &rounding = node.attrs.text("nearest_mode");
  const Shape &from = node.input(0)->type.shape, &to = node.output()->type.shape;
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] == Dim(0)) return false;
    const Dim factor = floor_divide(to[axis], from[axis]);
    if (!factor.is_constant() || factor * from[axis] != to[axis]) return false;
  }
  return (mode == "asymmetric" && rounding == "floor") ||
         (mode == "half_pixel" && rounding.starts_with("round_prefer"));
}

}  // namespace

bool keeps_elements(const Node& node) {
  return node.op->traits.view || node.is(ops::transpose) || node.is(ops::concat) || node.is(ops::depth_to_space) ||
         node.is(ops::space_to_depth);
}

bool moves_elements(const Node& node) {
  if (node.inputs.empty() || node.inputs[0] == nullptr || !node.inputs[0]->type.ranked) return false;
  if (node.is(ops::gather) || node.is(ops::gather_elements) || node.is(ops::gather_nd) || takes_maxima(node))
    return true;
  // Sizes that the node itself finds out carry its name.
  if (!node.is(ops::concat) && !std::all_of(node.inputs.begin() + 1, node.inputs.end(), is_given)) return false;
  if (node.is(ops::pad)) return pads_with_zero(node);
  return keeps_elements(node) || node.is(ops::slice) || node.is(ops::split) || node.is(ops::expand) ||
         node.is(ops::tile) || repeats_elements(node);
}

size_t moved_operands(const Node& node) { return node.is(ops::concat) ? node.inputs.size() : 1; }

}  // namespace hone
