// SPDX-License-Identifier: Apache-2.0
//
// A graph folded by the scopes in its nodes' names ("/layer1/layer1.0/conv1/Conv"): sheets with few boxes, each placed, of which a box
// stands for a node, for another sheet, or for what comes in and goes out.
#pragma once

#include <nlohmann/json.hpp>

#include "explore/model_view.h"

namespace hone {

inline constexpr double kBoxWidth = 240, kBoxHeight = 38, kBoxGapX = 24, kBoxGapY = 34;

/// [{title, parent, items, edges, width, height}, ...]: the first is all of the graph unfolded, then, where names have scopes, the
/// folded ones, their top first. Items are [kind, index, x, y]: a "node", a "sheet", an input or output of the graph ("in", "out"), or
/// a node elsewhere ("from", "to"). Edges are [from, to, shape and type, type, how many tensors, x, y, x, y, ...] between items.
nlohmann::ordered_json sheets_json(const ViewGraph& graph);

}  // namespace hone
