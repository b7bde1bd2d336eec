// SPDX-License-Identifier: Apache-2.0
//
// A register tile of matmuls of 8-bit integers: rows of A times columns of B, in sums of 32 bits that wrap around; then, where
// a factor says so, floats with an epilogue.
//
// Both operands come in steps of four bytes: four unsigned bytes of A and signed ones of B, whose products one instruction adds to a
// sum (VNNI), or two words of 16 bits, whose products cannot overflow where they hold bytes. A row of A is a row of steps; B is
// packed so that a step of all columns of a panel lies in a row: [panel][step][column][4 bytes or 2 words].
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/jit/tile_output.h"
#include "regions/integer_region.h"

namespace hone::cpu {

enum class IntegerDot { bytes, words };
constexpr std::array<std::string_view, 2> field_names(IntegerDot) { return {"bytes", "words"}; }

/// Elements of a step.
constexpr int64_t step_of(IntegerDot dot) { return dot == IntegerDot::bytes ? 4 : 2; }
constexpr int64_t kStepBytes = 4;

struct IntegerTileSpec {
  IntegerDot dot = IntegerDot::words;
  OutputSpec output;          // pixels are rows
  int64_t a_row = 0;          // bytes between rows of A
  int64_t b_step = 0;         // bytes between steps of B: of a panel, which may have more vectors than the tile
  bool column_zeros = false;  // columns have zero points: times the sum of a row they are taken off
  Factor factor = Factor::none;
};

/// What a tile gets at run time. Offsets in the code depend on the order. What belongs to columns has whole panels, but for the
/// factor.
struct IntegerTileArgs {
  TileArgs tile;             // src: steps of A, weights: the panel, dst, residual, bias
  const int32_t* base;       // what the sums of each column begin with
  const int32_t* zeros;      // of each column
  const uint32_t* row_sums;  // of each row
  const float* factor;
  int64_t steps;
};
using IntegerTileFunction = void (*)(const IntegerTileArgs*);

bool integer_tile_fits(Isa isa, IntegerDot dot, int rows, int vectors);
/// Returns where in the code the function begins.
size_t emit_integer_tile(Emitter& emitter, const IntegerTileSpec& spec);

}  // namespace hone::cpu
