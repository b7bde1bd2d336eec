// SPDX-License-Identifier: Apache-2.0
//
// --sparsity: weights with 2:4 structure, where of every four consecutive input channels two at most are not zero.
#pragma once

#include "base/log.h"
#include "ir/graph.h"

namespace hone {

/// Constant weights of convolutions and of matmuls with two axes, integers behind a DequantizeLinear among them.
struct SparseWeights {
  size_t fitting = 0, all = 0;
};
/// Says in the verbose log of each whether it has the structure.
SparseWeights check_sparsity(const Graph& graph, const Logger& log);
/// As trtexec prunes: of every four input channels the first two stay, the others become zero.
void prune(Graph& graph);

/// What `mode` (disable, enable or force) asks for, and lines that say what it comes to.
void apply_sparsity(Graph& graph, std::string_view mode, const Logger& log);

}  // namespace hone
