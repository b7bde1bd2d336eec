// SPDX-License-Identifier: Apache-2.0
//
// Regions: groups of nodes that become one layer. Formed by rules over the graph, independent of any backend; a source that
// cannot run a group refuses it, and the builder splits it.
#pragma once

#include <string>
#include <vector>

#include "device/tactic.h"
#include "ir/graph.h"

namespace hone {

struct Region {
  std::vector<Node*> nodes;             // in graph order; the last one gives the result
  std::vector<Value*> inputs, outputs;  // dynamic values only; constants belong to the region
  bool is_view = false;                 // nothing to compute: the result is the operand under another shape
  int64_t rounds = 1;                   // more: it goes entry by entry, at the usual sizes so many times

  std::string name() const;                 // node names joined with " + "
  std::vector<std::string> origin() const;  // ONNX nodes, without repeats
};

/// Covers every node exactly once, in an order in which every input is ready. Greedy by rule: a convolution or matmul takes
/// the activation and the residual addition behind it; neighbouring pointwise nodes of one shape become one region. With `bytes`,
/// for a device that has kernels for them, what brings bytes to f32 and back counts as pointwise.
std::vector<Region> form_regions(const Graph& graph, bool bytes = false);
/// The pieces into which a group falls that no source wants; empty for a single node.
std::vector<Region> split(const Region& region, const Graph& graph);

}  // namespace hone
