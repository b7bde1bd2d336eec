// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring parts of one value that a Concat puts side by side again are one part, or the value itself. Networks that
// split their channels, work on one half and then join everything are written that way.
#include <algorithm>

#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"
#include "passes/slices.h"

namespace hone::passes {
namespace {

struct Part {
  Value* whole;
  SliceRange range;
};

std::optional<Part> part_of_split(const Value* value) {
  Node* node = producer(value, ops::split);
  if (node == nullptr) return std::nullopt;
  const size_t axis = normalize_axis(node->attrs.integer("axis"), value->type.shape.rank());
  SliceRange range{axis, 0, 0};
  for (const Value* output : node->outputs) {
    const Dim& size = output->type.shape[axis];
    if (!size.is_constant()) return std::nullopt;
    range.begin = std::exchange(range.end, range.end + size.value());
    if (output == value) return Part{node->input(0), range};
  }
  return std::nullopt;
}

std::optional<Part> part_of(const Value* value) {
  if (const Node* node = producer(value, ops::slice)) {
    const std::optional<SliceRange> range = slice_range(node);
    return range ? std::optional(Part{node->input(0), *range}) : std::nullopt;
  }
  return part_of_split(value);
}

/// The Concat's operands with the first two neighbours that belong together joined; empty when there are none.
std::vector<Value*> with_neighbours_joined(Graph& graph, Node* concat) {
  const size_t axis = normalize_axis(concat->attrs.integer("axis"), concat->output()->type.shape.rank());
  for (size_t i = 0; i + 1 < concat->inputs.size(); ++i) {
    const std::optional<Part> a = part_of(concat->input(i)), b = part_of(concat->input(i + 1));
    if (!a || !b || a->whole != b->whole || a->range.axis != axis || b->range.axis != axis ||
        a->range.end != b->range.begin)
      continue;
    const bool everything = a->range.begin == 0 && a->whole->type.shape[axis] == Dim(b->range.end);
    std::vector<Value*> operands = concat->inputs;
    operands[i] = everything ? a->whole
                             : insert_slice(graph, concat, a->whole, {axis, a->range.begin, b->range.end},
                                            {concat->input(i)->producer, concat->input(i + 1)->producer})
                                   ->output();
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return operands;
  }
  return {};
}

}  // namespace

void rejoin_slices(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    if (!node->is(ops::concat)) continue;
    for (std::vector<Value*> operands = with_neighbours_joined(graph, node); !operands.empty();
         operands = with_neighbours_joined(graph, node)) {
      context.report_removal(node->input(0)->producer->name);
      Node* joined = insert_for(graph, node, ops::concat, operands, node->attrs, {node});
      graph.replace(node->output(), joined->output());
      node = joined;
    }
  }
}

}  // namespace hone::passes
