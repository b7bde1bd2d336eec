// SPDX-License-Identifier: Apache-2.0
//
// Generates the innermost kernel of convolution and GEMM: one tile of `pixels` output pixels times `vectors` vectors of
// output channels, summed over the rows of the filter (run time), its columns ("taps", unrolled) and `depth` input channels.
//
// The idea: with the shape known, the address of every input element is a base register plus a constant, so the whole
// inner loop is broadcasts and FMAs. A tap that falls into the padding for some of the pixels is simply not emitted there.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/jit/epilogue.h"

namespace hone::cpu {

/// What a tile gets at run time. Offsets in the code depend on the order.
struct TileArgs {
  const float* src;       // first input row that counts, at the tile's first column and first channel
  const float* weights;   // first packed weight of that filter row
  float* dst;
  const float* residual;
  const float* bias;
  const float* prefetch;  // weights that a later tile needs, brought into L2 on the way
  int64_t rows;           // filter rows inside the image, may be zero
  int64_t flags;          // TileFlag
};

enum TileFlag : int64_t { kFirstBlock = 1, kLastBlock = 2 };

using TileFunction = void (*)(const TileArgs*);

/// One column of the filter. Offsets in bytes. Pixels outside of [begin, end) see padding there.
struct Tap {
  int64_t src, weights;
  int begin, end;
  bool operator==(const Tap&) const = default;
};

/// Everything the generated code depends on. Strides in bytes.
struct TileSpec {
  int pixels = 0, vectors = 0;
  int tail = 0;  // lanes of the last vector, 0 when it is full
  int64_t depth = 0;
  std::vector<Tap> taps;
  int64_t src_pixel = 0, src_channel = 4, src_row = 0;
  int64_t weights_channel = 0, weights_row = 0;
  bool weights_in_place = false;  // weights are the caller's matrix: the last vector may not be read past its tail
  bool blocked = false;           // the sum may be split over several calls, through dst
  int prefetch_lines = 0;         // cache lines of `prefetch` per unrolled step
  int64_t dst_pixel = 0, residual_pixel = 0;
  Epilogue epilogue;
};

/// True when a tile of this size fits into the registers.
bool tile_fits(Isa isa, int pixels, int vectors);

/// Emits one function; returns its offset in the emitter's code.
size_t emit_tile(Emitter& emitter, const TileSpec& spec);

}  // namespace hone::cpu
