// SPDX-License-Identifier: Apache-2.0
//
// Generates the register tile of a depthwise convolution: a run of output pixels times a few vectors of channels.
#pragma once

#include "backends/cpu/conv/strips.h"
#include "backends/cpu/jit/tile_output.h"

namespace hone::cpu {

/// Strides in bytes; the input has the type of the result, weights are f32. The generated function takes TileArgs.
struct DepthwiseSpec : OutputSpec {
  TileClass tile;
  int stride = 1, dilation = 1;
  int64_t src_pixel = 0, src_row = 0;  // src_row: from one filter row to the next
  int64_t block_bytes = 0;             // packed weights of one tap
};

size_t emit_depthwise_tile(Emitter& emitter, const DepthwiseSpec& spec);

}  // namespace hone::cpu
