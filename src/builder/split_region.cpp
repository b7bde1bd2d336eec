// SPDX-License-Identifier: Apache-2.0
//
// What the rest of a graph sees of some of its nodes, and the regions that one falls apart into where no source takes it.
#include <algorithm>
#include <unordered_set>

#include "builder/region_nodes.h"
#include "builder/regions.h"
#include "ops/ops.h"

namespace hone {

Region region_of(std::vector<Node*> nodes, const Graph& graph, const Positions& position) {
  std::sort(nodes.begin(), nodes.end(), [&](const Node* a, const Node* b) { return position.at(a) < position.at(b); });
  Region region;
  region.nodes = std::move(nodes);
  const std::unordered_set<const Node*> inside(region.nodes.begin(), region.nodes.end());
  for (Node* node : region.nodes)
    for (Value* value : node->inputs)
      if (value != nullptr && !value->is_constant() && !is_shape_data(*value) && !inside.contains(value->producer) &&
          std::find(region.inputs.begin(), region.inputs.end(), value) == region.inputs.end())
        region.inputs.push_back(value);
  for (Node* node : region.nodes)
    for (Value* value : node->outputs) {
      const bool used_outside = std::any_of(value->uses.begin(), value->uses.end(),
                                            [&](const Use& use) { return !inside.contains(use.node); });
      if (used_outside || graph.is_output(value) || (node == region.nodes.back() && node->outputs.size() == 1))
        region.outputs.push_back(value);
    }
  if (region.outputs.empty()) region.outputs.push_back(region.nodes.back()->output());
  const auto on_host_only = [](const Value* value) { return is_object(value->type.dtype) || !value->type.ranked; };
  const bool on_host =
      on_host_only(region.outputs[0]) || std::any_of(region.inputs.begin(), region.inputs.end(), on_host_only);
  region.is_view = region.nodes.size() == 1 && region.nodes[0]->op->traits.view && region.inputs.size() == 1 &&
                   region.inputs[0] == region.nodes[0]->inputs[0] && !on_host;
  return region;
}

std::vector<Region> split(const Region& region, const Graph& graph) {
  if (region.nodes.size() < 2) return {};
  Positions position;
  for (size_t i = 0; i < region.nodes.size(); ++i) position[region.nodes[i]] = i;
  std::vector<Region> pieces;
  const auto cut = [&](size_t at) {
    const auto middle = region.nodes.begin() + static_cast<std::ptrdiff_t>(at);
    pieces.push_back(region_of({region.nodes.begin(), middle}, graph, position));
    pieces.push_back(region_of({middle, region.nodes.end()}, graph, position));
  };
  size_t last_anchor = region.nodes.size();
  while (last_anchor > 0 && !is_anchor(*region.nodes[--last_anchor])) {}
  // Where matmuls of codes fall apart each keeps its Decode.
  if (are_parallel(region.nodes) && region.nodes[last_anchor - 1]->is(ops::decode)) --last_anchor;
  const auto rounding = std::ranges::find_if(region.nodes, [](const Node* node) { return rounds_to_codes(*node); });
  if (last_anchor > 0) cut(last_anchor);
  // What a library makes, and a chain of pointwise nodes.
  else if (is_anchor(*region.nodes[0]) && rounding != region.nodes.end())
    cut(static_cast<size_t>(rounding - region.nodes.begin()));
  else if (is_anchor(*region.nodes[0])) cut(region.nodes.size() - 1);
  else if (region.nodes[0]->is(ops::concat) && region.nodes.back()->op->is_pointwise()) cut(1);
  else
    for (Node* node : region.nodes) pieces.push_back(region_of({node}, graph, position));
  for (Region& piece : pieces) piece.rounds = region.rounds;
  return pieces;
}

}  // namespace hone
