// SPDX-License-Identifier: Apache-2.0
//
// Sizes that a model's inputs leave open though a node allows one only: the head size of a cache that an exporter wrote as a name, say,
// which the projection beside it gives.
#pragma once

#include "ir/graph.h"

namespace hone::onnx {

/// By symbol; what the nodes of a body ask for is not among them.
SymbolValues fixed_sizes(const Graph& graph);

}  // namespace hone::onnx
