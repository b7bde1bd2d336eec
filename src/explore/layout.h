// SPDX-License-Identifier: Apache-2.0
//
// Places a graph's nodes on a plane in layers, as Sugiyama does: a row is one more than its inputs' deepest, edges over several rows get a
// place in each of them, rows are ordered so that edges cross little (medians, several sweeps), and boxes move towards their neighbours.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace hone {

struct PlacedNode {
  double x = 0, y = 0;  // of the box's middle
};

struct GraphLayout {
  std::vector<PlacedNode> nodes;
  std::vector<std::vector<PlacedNode>> bends;  // of each edge: what it goes through on its way down
  double width = 0, height = 0;
};

struct BoxSizes {
  double width, height, gap_x, gap_y;
};

/// Edges go from a node to a later one of the order in which nodes are numbered; others are not followed.
GraphLayout place_graph(size_t nodes, const std::vector<std::pair<size_t, size_t>>& edges, const BoxSizes& sizes);

}  // namespace hone
