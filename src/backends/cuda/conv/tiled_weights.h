// SPDX-License-Identifier: Apache-2.0
//
// Weights as persistent_gemm copies them into shared memory: a step of a tile of filters is one piece of memory, in the order in which
// the multiplying instruction reads it.
#pragma once

#include "tensor/tensor.h"

namespace hone::cuda {

/// Bytes of a step's weights, a filter; where the weights are sparse, of 32 floats of 16 bits, and of which of 64 channels they belong to.
inline constexpr int64_t kTiledBytes = 128, kSparseBytes = 64, kPlacesBytes = 8;

/// Of rows [filter][...], a multiple of 16 bytes each: [tile][step][place in the tile][128 bytes], pieces of 16 exchanged by the place's
/// number. Of every eight columns of the product a thread has two neighbours: filters lie such that a thread has `neighbours` side by side,
/// an even number of which four divide a tile. Zeros fill the last step and tile.
Tensor tiled(const Tensor& rows, int64_t tile_filters, int64_t neighbours);
/// Of rows [filter][tap][channel], the same with so many bytes of the channels at a time: [filter][chunk][tap][bytes of the chunk], zeros
/// behind a chunk's taps up to whole steps.
Tensor in_chunks(const Tensor& rows, int64_t chunk_bytes);
/// Of rows of floats of 16 bits of 2:4 structure: [tile][step], and in a step 64 bytes of each filter, pieces of 16 exchanged by half its
/// number; behind them, for 64 filters at a time, a word for each of 128 threads (PTX, wgmma.mma_async.sp, metadata of .f16). Throws Error
/// where more than two of four are not zero.
Tensor tiled_sparse(const Tensor& rows, int64_t tile_filters);

}  // namespace hone::cuda
