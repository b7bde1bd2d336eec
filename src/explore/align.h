// SPDX-License-Identifier: Apache-2.0
//
// Which layers of two engines do the same work: those that stand for the same nodes of the model; where files name no nodes, those of
// one type and shapes in the same order.
#pragma once

#include <span>
#include <vector>

#include "explore/engine_file.h"

namespace hone {

/// Indices of layers; a group's sides do the same nodes together. An empty side: the other engine has no such layer.
struct LayerPair {
  std::vector<size_t> first, second;
};

/// Every layer of both is in one pair, in the order of the first engine's layers.
std::vector<LayerPair> align_layers(std::span<const LayerRow> first, std::span<const LayerRow> second);

}  // namespace hone
