// SPDX-License-Identifier: Apache-2.0
//
// Generates the innermost kernel of convolution and GEMM: one register tile of `pixels` output pixels (of a GEMM: rows of A)
// times `vectors` vectors of output channels, summed over the rows of the filter (run time), its columns ("taps", unrolled)
// and `depth` input channels.
//
// The idea: with the shape known, the address of every input element is a base register plus a constant, so the whole
// inner loop is broadcasts and FMAs. A tap that falls into the padding for some of the pixels is simply not emitted there.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/jit/tile_output.h"
#include "tensor/dtype.h"

namespace hone::cpu {

/// One column of the filter. Offsets in bytes. Pixels outside of [begin, end) see padding there.
struct Tap {
  int64_t src, weights;
  int begin, end;
  bool operator==(const Tap&) const = default;
};

/// Everything the generated code depends on. Strides in bytes.
struct TileSpec : OutputSpec {
  int64_t depth = 0;
  std::vector<Tap> taps;
  int64_t src_pixel = 0, src_channel = 4, src_row = 0;
  int64_t weights_channel = 0, weights_row = 0;
  DType weights = DType::f32;
  bool weights_in_place = false;  // weights are the caller's matrix: the last vector may not be read past its tail
  int prefetch_lines = 0;         // cache lines of `prefetch` per unrolled step
};

/// True when a tile of this size fits into the registers.
bool tile_fits(Isa isa, int pixels, int vectors);
/// And with all weights in registers, as those must be that are kept in 16 bits.
bool tile_fits_narrow(Isa isa, int pixels, int vectors);

/// Input channels per pass of the inner loop; `taps` is the number of unrolled filter columns.
int tile_unroll(int pixels, int vectors, size_t taps);

/// Cache lines that every pass must prefetch so that `calls` calls of this tile together fetch `bytes`.
int prefetch_lines(const TileSpec& spec, int64_t rows, int64_t calls, int64_t bytes);

/// Emits one function; returns its offset in the emitter's code.
size_t emit_tile(Emitter& emitter, const TileSpec& spec);

}  // namespace hone::cpu
