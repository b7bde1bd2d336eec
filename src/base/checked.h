// SPDX-License-Identifier: Apache-2.0
//
// Checked integer arithmetic: the only way sizes that come from files are multiplied and added.
#pragma once

#include <cstdint>

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

/// Of a value that is not negative and a positive multiple.
inline int64_t round_up(int64_t value, int64_t multiple) {
  return checked_add(value, multiple - 1) / multiple * multiple;
}
inline int64_t ceil_divide(int64_t a, int64_t b) { return checked_add(a, b - 1) / b; }

}  // namespace hone
