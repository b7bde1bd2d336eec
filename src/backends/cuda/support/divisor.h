// SPDX-License-Identifier: Apache-2.0
//
// A size by which a kernel divides again and again: it multiplies by an inverse instead (support/division.cuh).
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace hone::cuda {

/// Divides numbers below 2^31: the quotient is the high half of the product with `inverse`, shifted to the right.
struct Divisor {
  static constexpr std::string_view kName = "Divisor";
  int32_t size = 1, inverse = 0, shift = 0;  // the inverse as the bits of an unsigned number

  Divisor() = default;
  explicit Divisor(int64_t by) : size(static_cast<int32_t>(by)) {
    HONE_CHECK(by >= 0 && by < int64_t{1} << 31, "a kernel divides by {}", by);
    if (by <= 1) return;
    // Exact: size * inverse exceeds 2^(32 + shift) by at most 2^(shift + 1).
    shift = std::bit_width(static_cast<uint64_t>(by) - 1) - 1;
    inverse = static_cast<int32_t>((uint64_t{1} << (32 + shift)) / static_cast<uint64_t>(by) + 1);
  }
  static void fields(auto& self, auto& visit) {
    visit("size", self.size);
    visit("inverse", self.inverse);
    visit("shift", self.shift);
  }
};

}  // namespace hone::cuda
