// SPDX-License-Identifier: Apache-2.0
//
// The plain kind of Slice: consecutive elements of one axis.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace hone {

struct SliceRange {
  size_t axis;
  int64_t begin, end;
};

/// The range a node takes when it is a Slice of one axis of known size with constant bounds and step 1.
std::optional<SliceRange> slice_range(const Node* node);

/// A value as a part of another: cut out by such a Slice, or by a Split into known sizes.
struct SlicePart {
  Value* whole;
  SliceRange range;
};
std::optional<SlicePart> part_of(const Value* value);

Node* insert_slice(Graph& graph, Node* position, Value* value, const SliceRange& range, std::vector<const Node*> parts);

}  // namespace hone
