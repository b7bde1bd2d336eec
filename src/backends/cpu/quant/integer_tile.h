// SPDX-License-Identifier: Apache-2.0
//
// A register tile of matmuls and convolutions of bytes: rows of A (pixels of an image) times columns of B, in sums of 32 bits that
// wrap around; then, where a factor says so, floats with an epilogue, or bytes again.
//
// Both operands come in steps of four bytes: four unsigned bytes of A and signed ones of B, whose products one instruction adds to a
// sum (VNNI), or two words of 16 bits, whose products cannot overflow where they hold bytes. A row of A is a row of steps at each of
// the taps, whose places are relative to the row's; B is packed so that a step of all columns of a panel lies in a row:
// [panel][tap][step][column][4 bytes or 2 words].
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/jit/tile_output.h"
#include "backends/cpu/quant/byte_output.h"
#include "regions/integer_region.h"

namespace hone::cpu {

/// What multiplies: vectors of bytes (VNNI), vectors of words, matrix tiles of bytes (AMX).
enum class IntegerDot { bytes, words, tiles };
constexpr std::array<std::string_view, 3> field_names(IntegerDot) { return {"bytes", "words", "tiles"}; }

/// Elements of a step.
constexpr int64_t step_of(IntegerDot dot) { return dot == IntegerDot::words ? 2 : 4; }
constexpr DType weight_type(IntegerDot dot) { return dot == IntegerDot::words ? DType::i16 : DType::i8; }
constexpr int64_t kStepBytes = 4;

struct IntegerTileSpec {
  IntegerDot dot = IntegerDot::words;
  OutputSpec output;   // pixels are rows; strides in bytes of what is stored
  int64_t a_row = 0;   // bytes between rows of A
  int64_t b_step = 0;  // bytes between steps of B: of a panel, which may have more vectors than the tile
  int64_t steps = 1;   // of each tap
  int64_t taps = 1;
  int64_t sum_row = 0;  // bytes between rows of sums that are given; 0: the tile multiplies, and begins with `base`
  bool column_zeros = false;  // columns have zero points: times the sum of a row they are taken off
  Factor factor = Factor::none;
  ByteOutputSpec bytes;  // whose result is none where the sums become no bytes
};

/// What a tile gets at run time. Offsets in the code depend on the order. What belongs to columns has whole panels, but for a
/// factor that is an input.
struct IntegerTileArgs {
  TileArgs tile;             // src: A, weights: the panel, dst, residual, bias
  const int32_t* base;       // what the sums of each column begin with
  const int32_t* zeros;      // of each column
  const uint32_t* row_sums;  // of each row
  const float* factor;
  const int64_t* taps;  // where in a row each one's steps are, in bytes
  const int32_t* sums;  // where they are given
};
using IntegerTileFunction = void (*)(const IntegerTileArgs*);

bool integer_tile_fits(Isa isa, IntegerDot dot, int rows, int vectors);
/// Returns where in the code the function begins.
size_t emit_integer_tile(Emitter& emitter, const IntegerTileSpec& spec);

}  // namespace hone::cpu
