// SPDX-License-Identifier: Apache-2.0
//
// What a model's own numbers do at their ends, in every evaluation and kernel that is not generated: integers wrap, and
// floats on the way to integers truncate and saturate, not-a-number becoming 0. C++ leaves both undefined. Sizes neither
// wrap nor saturate: checked.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace hone {

/// Calculated in 64 bits without a sign, of which the type keeps the low ones. Floats are added as they are.
template <typename T>
constexpr T wrapping_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else return a + b;
}
template <typename T>
constexpr T wrapping_subtract(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else return a - b;
}
template <typename T>
constexpr T wrapping_multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else return a * b;
}

template <std::integral To, std::floating_point From>
constexpr To saturated(From value) {
  if (value != value) return 0;
  if (value <= static_cast<From>(std::numeric_limits<To>::lowest())) return std::numeric_limits<To>::lowest();
  if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

/// What was calculated as a double for a T.
template <typename T>
constexpr T from_real(double value) {
  if constexpr (std::is_integral_v<T>) return saturated<T>(value);
  else return static_cast<T>(value);
}

}  // namespace hone
