// SPDX-License-Identifier: Apache-2.0
//
// A register tile of the same products as quantized_tile.h on the same panels of 4-bit codes, where x is given as digits
// (activation_digits.h): four products of bytes are added up at once, and a block's sums become floats when they are complete. Sums of
// integers round nothing.
#pragma once

#include "backends/cpu/weights/activation_digits.h"
#include "backends/cpu/weights/quantized_tile.h"

namespace hone::cpu {

struct DigitTileSpec {
  QuantizedTileSpec tile;  // x_row: bytes between rows of digits
  bool dots = false;       // by VNNI
};

/// Rows of a block at most, so that no sum of digits leaves 32 bits.
constexpr int64_t kMostDigitRows = 1 << 20;

bool digit_tile_fits(Isa isa, int rows, int vectors);
/// A TileFunction; src: the digits. Returns where in the code it begins.
size_t emit_digit_tile(Emitter& emitter, const DigitTileSpec& spec);

}  // namespace hone::cpu
