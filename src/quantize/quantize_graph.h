// SPDX-License-Identifier: Apache-2.0
//
// Quantisation written into a graph: QuantizeLinear and DequantizeLinear around what Placement names, weights as integers. What
// `hone quantize` writes into a model's file imports as the same graph.
#pragma once

#include "quantize/placement.h"
#include "quantize/scale.h"

namespace hone {

/// `scales` has one for every tensor of the placement, which is of this graph. Throws Error naming weights that are not finite.
void quantize_graph(Graph& graph, const Placement& placement, const TensorScales& scales, Codes codes);

}  // namespace hone
