// SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a captured graph may begin before the ones ahead of them have ended.
#pragma once

#include <cstddef>
#include <set>

#include "backends/cuda/run/libraries.h"

namespace hone::cuda {

/// A captured launch that asked for programmatic serialization hangs on an edge that lets it begin early. That holds for kernels
/// that wait before they read or write anything that another kernel touches: `waiting`. cuDNN's and cuBLASLt's ask for it too,
/// and some read an operand of their epilogue (a residual) without waiting: their edges become ones that wait for the end and
/// for the memory of the node ahead. Returns how many early edges are left.
size_t keep_early_edges(CUgraph graph, const std::set<CUfunction>& waiting);

}  // namespace hone::cuda
