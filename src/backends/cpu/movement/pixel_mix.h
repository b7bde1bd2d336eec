// SPDX-License-Identifier: Apache-2.0
//
// Sampling images between their pixels: where the channels of a pixel lie behind each other, a sample is a weighted sum of a few
// rows of channels, in vectors whatever the places are. What GridSample and RoiAlign share.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"
#include "backends/cpu/movement/strided_copy.h"

namespace hone::cpu {

/// Floats that may be read behind the last pixel, and written behind the last sample.
inline constexpr int64_t kMixSlack = 16;

/// y[c] = sum of weights[k] * image[pixels[k] * channels + c].
struct MixedPixels {
  const float* image;
  const int32_t* pixels;
  const float* weights;
  int64_t count, channels;
  float* y;
};

struct PixelKernels {
  void (*mix)(const MixedPixels&);
};
PixelKernels pixel_kernels(Isa isa);

/// Brings images of [channels][area] to [area][channels]. Its items are shared among workers.
class PixelMajor {
 public:
  PixelMajor(int64_t images, int64_t channels, int64_t area);
  /// Of all images, with the slack behind them: a multiple of 64.
  size_t bytes() const { return static_cast<size_t>((size_ + kMixSlack + 15) / 16) * 64; }
  int64_t items() const { return copy_.items(); }
  void run(int64_t begin, int64_t end, const float* from, float* to) const { copy_.run(begin, end, from, to); }

 private:
  int64_t size_;
  CopyLoops copy_;
};

}  // namespace hone::cpu
