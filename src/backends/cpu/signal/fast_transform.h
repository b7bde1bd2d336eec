// SPDX-License-Identifier: Apache-2.0
//
// The discrete Fourier transform of kSignals signals at once, one in each lane, so that vectors are full whatever the length. Stockham's
// form: a pass for each factor of the length, from one buffer to the other, which leaves the results in order. Compiled for every
// instruction set.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

inline constexpr int64_t kSignals = 16;

class FastTransform {
 public:
  /// Any length; large prime factors cost their square.
  FastTransform(int64_t length, bool inverse, Isa isa);

  /// Floats of a buffer: real parts of a point of all signals, then imaginary ones, point after point.
  int64_t buffer() const { return length_ * 2 * kSignals; }
  /// Which of the two buffers holds the result, not divided by the length. `from` holds the signals.
  float* operator()(float* from, float* to) const;

 private:
  using Pass = void (*)(const float* from, float* to, int64_t n, int64_t stride, int64_t factor, int64_t length,
                        const float* roots);
  int64_t length_;
  std::vector<int64_t> factors_;
  std::vector<float> roots_;  // real and imaginary parts in turns
  Pass pass_;
};

}  // namespace hone::cpu
