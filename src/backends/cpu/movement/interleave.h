// SPDX-License-Identifier: Apache-2.0
//
// Pixels of two to four channels to planes and back, in vectors: how images come and go. Elements are only moved, so the oldest
// instruction set serves all.
#pragma once

#include <cstdint>

namespace hone::cpu {

/// For `count` pixels of 2 to 4 channels; a plane begins `step` elements behind the one before. T: unsigned, of up to 4 bytes.
template <typename T>
struct PixelMoves {
  /// to[c * step + i] = from[i * channels + c]
  void (*split)(const T* from, int64_t channels, int64_t count, T* to, int64_t step);
  /// to[i * channels + c] = from[c * step + i]
  void (*join)(const T* from, int64_t step, int64_t channels, int64_t count, T* to);
};

template <typename T>
const PixelMoves<T>& pixel_moves();

}  // namespace hone::cpu
