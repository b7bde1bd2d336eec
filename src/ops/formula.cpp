// SPDX-License-Identifier: Apache-2.0

#include "ops/formula.h"

#include <algorithm>
#include <set>

#include "ir/op.h"

namespace hone {
namespace {

bool is_float_scalar(const Value& value) {
  return value.is_constant() && is_float(value.type.dtype) && value.constant->size() == 1;
}

}  // namespace

std::vector<Node*> formula_behind(const Graph& graph, std::span<Node* const> nodes, const Value* from, size_t most) {
  std::set<const Node*> inside;
  std::vector<Node*> found;
  const auto is_made = [&](const Value* value) {
    return value != nullptr && (value == from || inside.contains(value->producer));
  };
  const auto is_known = [&](const Value* value) {
    return is_made(value) || (value != nullptr && is_float_scalar(*value));
  };
  const auto stays_inside = [&](const Value* value) {
    return !graph.is_output(value) &&
           std::ranges::all_of(value->uses, [&](const Use& use) { return inside.contains(use.node); });
  };
  const auto is_closed = [&](const Node* node) { return stays_inside(node->output()); };
  for (Node* node : nodes) {
    if (std::ranges::none_of(node->inputs, is_made)) continue;
    if (!node->op->is_pointwise() || node->output()->type != from->type || found.size() == most ||
        !std::ranges::all_of(node->inputs, is_known))
      return {};
    inside.insert(node);
    found.push_back(node);
    if (stays_inside(from) && std::all_of(found.begin(), found.end() - 1, is_closed)) return found;
  }
  return {};
}

}  // namespace hone
