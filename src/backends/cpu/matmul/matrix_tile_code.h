// SPDX-License-Identifier: Apache-2.0
//
// Generates what a matmul on matrix tiles (AMX) consists of: the multiplication of up to 32 pixels by 32 output channels into
// sums of f32, the output of a row of such sums, and the packing of pixels (of a matmul: rows of A) into the order that tiles are loaded in.
//
// A matrix tile holds 16 rows of 64 bytes: 16 pixels of 32 input channels, or 16 pairs of input channels of 16 output channels.
// Four tiles are sums, two pixels, two weights; each loaded tile is used twice, and more often where elements are cut into parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/jit/isa.h"
#include "regions/epilogue.h"
#include "tensor/dtype.h"

namespace hone::cpu {

class Emitter;

constexpr int64_t kTilePixels = 32, kTileChannels = 32, kTileDepth = 32;  // of one multiplication and one of its steps
constexpr int64_t kTileRow = 64, kTileBytes = 1024;
constexpr int64_t kStepWeights = 2 * kTileBytes;  // weights of a step, of fewer channels too

/// Offsets in the code depend on the order.
struct TileMatmulArgs {
  const std::byte* src;              // first pixel
  const std::byte* weights;          // first step of the panel
  float* sums;                       // a row for each pixel
  const int64_t* taps;               // bytes from src to each tap's first pixel
  const std::byte* prefetch;         // weights of a later panel
  const std::byte* begin = nullptr;  // what the sums of each channel begin with
};

struct TileMatmulSpec {
  int pixels = 32, channels = 32;               // 16 or 32
  int64_t taps = 1, channel_blocks = 1;         // steps are their product
  int64_t src_pixel = kTileRow, src_block = 0;  // bytes
  int64_t sum_row = 4 * kTileChannels;          // bytes
  bool accumulates = false;                     // adds to the sums that are there
  bool begins = false;                          // adds to one value for each channel
  bool bytes = false;                           // unsigned ones times signed ones, 64 a step, in sums of i32
  int parts = 1;           // of each element (tile_operands.h); those of the weights follow each other in a step
  int64_t src_part = 0;    // bytes from one part of a pixel to the next
  int prefetch_lines = 0;  // for each step
};

struct TileOutputArgs {
  const float* sums;  // rows of kTileChannels
  std::byte* dst;
  const std::byte* residual;
  const float* bias;
  int64_t pixels;  // at least one
};

struct TileOutputSpec {
  int channels = 32;        // 1 to 32
  DType type = DType::f32;  // of dst and residual
  int64_t dst_pixel = 0;    // bytes, of residual too
  Epilogue epilogue;
};

struct TilePackArgs {
  const std::byte* src;
  std::byte* dst;  // kTileRow for each pixel
  int64_t pixels;  // at least one
};

struct TilePackSpec {
  int channels = 32;  // 1 to 32; the others become zero
  DType type = DType::f32;
  int64_t src_pixel = 0;  // bytes
  float scale = 1;        // of f32
  int parts = 1;          // that an f32 is cut into
  int64_t dst_part = 0;   // bytes from one part to the next
};

using TileMatmul = void (*)(const TileMatmulArgs*);
using TileOutputRow = void (*)(const TileOutputArgs*);
using TilePack = void (*)(const TilePackArgs*);
using TileSwitch = void (*)(const void* configuration);

/// LDTILECFG's operand: every tile has 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {kTileRow, kTileRow, kTileRow, kTileRow, kTileRow, kTileRow, kTileRow, kTileRow};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);
inline constexpr TileConfiguration kFullTiles;

/// Each emits one function and returns its offset in the emitter's code.
size_t emit_tile_matmul(Emitter& emitter, const TileMatmulSpec& spec);
size_t emit_tile_output(Emitter& emitter, const TileOutputSpec& spec);
size_t emit_tile_pack(Emitter& emitter, const TilePackSpec& spec);
/// Tiles of full size, from the 64 bytes that the function gets; and none.
size_t emit_tiles_on(Emitter& emitter);
size_t emit_tiles_off(Emitter& emitter);

/// The multiplication without the instructions.
void multiply_without_tiles(const TileMatmulSpec& spec, const TileMatmulArgs& args);

}  // namespace hone::cpu
