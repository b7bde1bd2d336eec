// SPDX-License-Identifier: Apache-2.0
//
// Rows of f32 as signed bytes, so that products with weights of few bits are sums of integers. An element of a block is the block's
// step, a power of two, times 65536 d0 + 256 d1 + d2: it keeps 22 bits or more below the block's largest, about as many as f32 has.
//
// A block is a head and then units of eight elements, in each the digits' eight bytes one after the other. The head: for each digit what
// its sum of products begins with (-8 times the sum of its bytes, since codes are kept 8 too large), the step, and the sum of all
// elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

struct DigitFormat {
  static constexpr int kDigits = 3;
  static constexpr int64_t kUnit = 8;    // elements
  static constexpr int64_t kMiddle = 8;  // of the codes of the weights

  static constexpr int64_t start(int64_t digit) { return digit * 4; }
  static constexpr int64_t kStep = kDigits * 4, kSum = kStep + 4, kHeadBytes = kSum + 4, kUnitBytes = kDigits * kUnit;
};

/// Writes a block of `count` elements, filled up with zeros. False where digits cannot say what the elements are: NaN, infinities, and
/// numbers so small or large that the step or the sum would leave f32.
using SplitDigits = bool (*)(const float* x, int64_t count, std::byte* to);
SplitDigits split_digits(Isa isa);

}  // namespace hone::cpu
