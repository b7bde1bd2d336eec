// SPDX-License-Identifier: Apache-2.0
//
// Generates a row of a depthwise convolution of bytes: pixel after pixel, the sums of a block of channels, as many as a vector has
// bytes.
//
// Bytes of several taps are interleaved, so that one instruction adds up the products of each channel: four taps (VNNI), or two as
// words. Interleaving leaves the channels of a block in four vectors q of 32-bit sums, whose element 4 l + e is channel
// 16 l + 4 q + e; packing the four to bytes brings back their order. What belongs to channels is kept in the order of the sums.
#pragma once

#include "backends/cpu/quant/byte_output.h"
#include "backends/cpu/quant/integer_tile.h"

namespace hone::cpu {

struct DepthwiseRowSpec {
  IntegerDot dot = IntegerDot::words;
  std::vector<int64_t> taps;             // where each one's channels lie, from the pixel's first, in bytes
  int channels = 1;                      // of the block that are stored
  int64_t src_pixel = 0, dst_pixel = 0;  // bytes
  Factor factor = Factor::none;
  bool bias = false;
  Activation activation;
  Quantization result;

  int64_t steps() const { return (static_cast<int64_t>(taps.size()) + step_of(dot) - 1) / step_of(dot); }
};

struct DepthwiseRowArgs {
  const std::byte* src;
  std::byte* dst;
  const std::byte* weights;  // [step][q][vector]
  const int32_t* base;       // [q][vector], as the others
  const float *factor, *bias;
  int64_t pixels;
};
using DepthwiseRowFunction = void (*)(const DepthwiseRowArgs*);

/// Channels of a block.
constexpr int64_t depthwise_block(Isa isa) { return 4 * lanes_of(isa); }
/// The place of a block's channel in the order of the sums.
constexpr int64_t depthwise_place(int64_t channel, Isa isa) {
  return channel % 16 / 4 * lanes_of(isa) + channel / 16 * 4 + channel % 4;
}

/// Returns where in the code the function begins.
size_t emit_depthwise_row(Emitter& emitter, const DepthwiseRowSpec& spec);

}  // namespace hone::cpu
