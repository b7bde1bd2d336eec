// SPDX-License-Identifier: Apache-2.0
//
// What the typed regions are read with. For src/regions alone (scripts/layers.py): a source that matched for itself would read
// the same region another way than the others.
#pragma once

#include <vector>

#include "ops/support.h"
#include "regions/region_match.h"

namespace hone {

/// `channel_axis` counts from the end: 1 is the last axis of the anchor's result (Linear), rank - 1 the second (Conv).
RegionMatch match_region(const Graph& region, const Node* anchor, size_t channel_axis,
                         Roundings roundings = Roundings::refused);

EpilogueCode epilogue_code(const RegionMatch& match, bool bias);
/// How floats are made of codes inside the region; nothing where they are not.
Decoding decoding_of(const Value* floats);
/// Of an anchor that nothing follows in the region.
RegionMatch match_bare(const Node* anchor, Roundings roundings);

/// Constant weights times the region's scale.
Floats scaled_weights(const RegionMatch& match, const Tensor& weights);
/// The anchor's own bias, scaled, plus the region's, one value per channel; empty when there is none.
std::vector<float> collect_bias(const RegionMatch& match, const Value* own, int64_t channels);

}  // namespace hone
