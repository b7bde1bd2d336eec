// SPDX-License-Identifier: Apache-2.0
//
// Weights of few bits as tiles read them (quantized_tile.h): panels of columns, in each block by block the scales, the zero points and
// the codes.
#pragma once

#include <cstddef>

#include "backends/cpu/weights/quantized_tile.h"
#include "regions/quantized_region.h"

namespace hone::cpu {

/// Columns are filled up to whole panels. Returns where the next panels go.
std::byte* write_panels(const QuantizedWeights& weights, const QuantizedFormat& format, int64_t panel, std::byte* to);

}  // namespace hone::cpu
