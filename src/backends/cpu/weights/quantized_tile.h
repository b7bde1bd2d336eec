// SPDX-License-Identifier: Apache-2.0
//
// A register tile of matmuls of f32 with weights of 4 or 8 bits: rows of x times columns of W, each block of a column first summed
// over its codes, less its zero point times the sum of x, then scaled. Codes become floats in registers, four bits by one permutation of a table where vectors have 16 lanes, floats of
// eight bits by way of those of sixteen.
//
// A panel of columns is one stretch of bytes that is read once, from the first to the last: for each block the columns' scales, their
// zero points where there are any, then the codes in units of eight rows. A unit of 4-bit codes is four bytes for each column,
// in the lower halves the first four rows, in the upper ones the others, each code 8 too large; one of 8-bit codes is eight rows of
// bytes. A block's last unit is filled up with zeros, and so is x.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/jit/tile_output.h"
#include "regions/quantized_region.h"

namespace hone::cpu {

enum class ZeroPoints { none, bytes, floats };
constexpr std::array<std::string_view, 3> field_names(ZeroPoints) { return {"none", "bytes", "floats"}; }

/// How the weights of k rows lie in a panel.
struct QuantizedFormat {
  static constexpr int64_t kUnit = 8;  // rows
  static constexpr int kMiddle = 8;    // by which 4-bit codes are too large
  /// Of a row in the 32 bits of a unit: four bits each.
  static constexpr int64_t place(int64_t row) { return row % 4 * 2 + row / 4; }

  int64_t k = 1, block = 1;
  int64_t bits = 4;
  CodeKind kind = CodeKind::integer;
  ZeroPoints zeros = ZeroPoints::none;

  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t last_block() const { return k - (blocks() - 1) * block; }
  static int64_t units(int64_t rows) { return (rows + kUnit - 1) / kUnit; }
  int64_t all_units() const { return (blocks() - 1) * units(block) + units(last_block()); }
  /// Of scales as they are stored: numbers of E4M3 lie in the exponents of 16-bit floats, which are 8 less.
  float scale_factor() const { return kind == CodeKind::e4m3 ? 0x1p8F : 1.0F; }
  /// Rows with those that fill blocks up.
  int64_t padded_k() const { return all_units() * kUnit; }
  // Bytes of a column.
  int64_t zero_bytes() const { return zeros == ZeroPoints::none ? 0 : zeros == ZeroPoints::bytes ? 1 : 4; }
  int64_t head_bytes() const { return 4 + zero_bytes(); }
  int64_t column_bytes() const { return blocks() * head_bytes() + all_units() * bits; }
};

struct QuantizedTileSpec {
  QuantizedFormat format;
  OutputSpec output;  // pixels are rows
  int64_t panel = 0;  // columns of a panel, which may have more vectors than the tile
  int64_t x_row = 0;  // bytes between rows of x
};

bool quantized_tile_fits(Isa isa, const QuantizedFormat& format, int rows, int vectors);
/// A TileFunction. src: x with blocks filled up; weights: the panel; bias: of whole panels. Returns where in the code it begins.
size_t emit_quantized_tile(Emitter& emitter, const QuantizedTileSpec& spec);

/// A panel to floats: [padded k][panel].
using UnpackFunction = void (*)(const void* panel, float* to);
constexpr int kMostUnpacked = 4;  // vectors of a panel
size_t emit_unpack(Emitter& emitter, const QuantizedFormat& format, int vectors);

}  // namespace hone::cpu
