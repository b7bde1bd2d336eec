// SPDX-License-Identifier: Apache-2.0
//
// Reading and making one-axis slices.
#include "passes/slices.h"

#include <algorithm>
#include <utility>

#include "ops/ops.h"
#include "passes/edit.h"

namespace hone {

std::optional<SliceRange> slice_range(const Node* node) {
  if (!node->is(ops::slice)) return std::nullopt;
  for (size_t i = 1; i < node->inputs.size(); ++i)
    if (node->input(i) == nullptr || !node->input(i)->is_constant()) return std::nullopt;
  if (node->input(1)->constant->size() != 1) return std::nullopt;
  const Shape& shape = node->input(0)->type.shape;
  const int64_t axis_number = node->input(3) == nullptr ? 0 : node->input(3)->constant->integer(0);
  const size_t axis = normalize_axis(axis_number, shape.rank());
  if (!shape[axis].is_constant() || (node->input(4) != nullptr && node->input(4)->constant->integer(0) != 1))
    return std::nullopt;
  const int64_t size = shape[axis].value();
  const auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  const SliceRange range{axis, bound(node->input(1)->constant->integer(0)),
                         bound(node->input(2)->constant->integer(0))};
  return range.begin < range.end ? std::optional(range) : std::nullopt;
}

std::optional<SlicePart> part_of(const Value* value) {
  if (const Node* node = producer(value, ops::slice)) {
    const std::optional<SliceRange> range = slice_range(node);
    return range ? std::optional(SlicePart{node->input(0), *range}) : std::nullopt;
  }
  const Node* node = producer(value, ops::split);
  if (node == nullptr) return std::nullopt;
  const size_t axis = normalize_axis(node->attrs.integer("axis"), value->type.shape.rank());
  SliceRange range{axis, 0, 0};
  for (const Value* output : node->outputs) {
    const Dim& size = output->type.shape[axis];
    if (!size.is_constant()) return std::nullopt;
    range.begin = std::exchange(range.end, range.end + size.value());
    if (output == value) return SlicePart{node->input(0), range};
  }
  return std::nullopt;
}

Node* insert_slice(Graph& graph, Node* position, Value* value, const SliceRange& range,
                   std::vector<const Node*> parts) {
  const std::vector<Value*> inputs{value, integers(graph, {range.begin}), integers(graph, {range.end}),
                                   integers(graph, {static_cast<int64_t>(range.axis)}), integers(graph, {1})};
  return insert_for(graph, position, ops::slice, inputs, {}, std::move(parts));
}

}  // namespace hone
