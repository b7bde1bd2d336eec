// SPDX-License-Identifier: Apache-2.0
#include "edit/shard/estimate.h"

#include <algorithm>
#include <array>
#include <set>

#include "edit/values.h"

namespace hone::edit {
namespace {

/// Of all weights but tables, of which an inference reads a few rows.
double bytes_read(const Graph& graph) {
  std::set<std::string_view> tables;
  for (const Node& node : graph.nodes)
    if (node.op_type == "Gather") tables.insert(node.inputs.front());
  double bytes = 0;
  for (const Weight& weight : graph.weights)
    if (!tables.contains(weight.name)) bytes += static_cast<double>(element_bytes(weight));
  return bytes;
}

bool is_collective(const Node& node) {
  constexpr std::array<std::string_view, 4> kNames{"DistCollective", "AllReduce", "AllGather", "AllToAll"};
  return std::ranges::find(kNames, node.op_type) != kNames.end();
}

}  // namespace

ShardEstimate estimate_shard(const Model& whole, const Model& rank, const CardRates& rates) {
  const auto collectives = std::ranges::count_if(rank.graph.nodes, is_collective);
  return {bytes_read(whole.graph) / rates.bytes_per_ms,
          bytes_read(rank.graph) / rates.bytes_per_ms + static_cast<double>(collectives) * rates.collective_ms,
          collectives};
}

}  // namespace hone::edit
