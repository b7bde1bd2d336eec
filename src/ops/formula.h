// SPDX-License-Identifier: Apache-2.0
//
// Pointwise nodes that make one value of another one alone, whatever is between them: an activation as exporters spell it out.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace hone {

/// The fewest of `nodes`, which stand in the graph's order behind `from`, that read it, float scalars and each other, keep its type,
/// and make one value of it. None where there are no such, or more than `most`.
std::vector<Node*> formula_behind(const Graph& graph, std::span<Node* const> nodes, const Value* from, size_t most);

}  // namespace hone
