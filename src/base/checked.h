// SPDX-License-Identifier: Apache-2.0
//
// Checked integer arithmetic: the only way sizes that come from files are multiplied and added.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"

namespace hone {

inline int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t result;
  HONE_CHECK(!__builtin_mul_overflow(a, b, &result), "size overflow: {} * {} does not fit 64 bits", a, b);
  return result;
}

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  HONE_CHECK(!__builtin_add_overflow(a, b, &result), "size overflow: {} + {} does not fit 64 bits", a, b);
  return result;
}

/// Sizes that come from a plan: none is negative, and what is calculated with them, empty tensors included, stays far from the
/// ends of 64 bits.
inline void require_sizes(std::span<const int64_t> dims) {
  constexpr int64_t kMostElements = int64_t{1} << 44;
  int64_t product = 1;
  for (const int64_t dim : dims) {
    HONE_CHECK(dim >= 0, "a size is negative: {}", dim);
    HONE_CHECK(dim <= kMostElements / product, "a size is too large: {}", dim);
    product *= dim > 1 ? dim : 1;
  }
}

/// Of a value that is not negative and a positive multiple.
inline int64_t round_up(int64_t value, int64_t multiple) {
  return checked_add(value, multiple - 1) / multiple * multiple;
}
inline int64_t ceil_divide(int64_t a, int64_t b) { return checked_add(a, b - 1) / b; }

}  // namespace hone
