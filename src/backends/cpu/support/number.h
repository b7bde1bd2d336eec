// SPDX-License-Identifier: Apache-2.0
//
// Elements as numbers to calculate with, for loops that are written once for every element type: the small floats as floats,
// sums of floats in double precision, sums of integers in 64 bits, as the reference does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/numbers.h"
#include "tensor/dtype.h"

namespace hone::cpu {

template <typename T>
inline constexpr bool kIsSmallFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;
template <typename T>
inline constexpr bool kIsFloat = kIsSmallFloat<T> || std::is_floating_point_v<T>;

/// What sums of T are taken in.
template <typename T>
using Wide = std::conditional_t<kIsFloat<T>, double, int64_t>;

/// For comparisons: exact.
template <typename T>
auto comparable(T value) {
  if constexpr (kIsSmallFloat<T>) return static_cast<float>(value);
  else return value;
}

template <typename T>
Wide<T> widened(T value) {
  return static_cast<Wide<T>>(comparable(value));
}

template <typename T, typename Number>
T narrowed(Number value) {
  if constexpr (kIsSmallFloat<T>) return T(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, bool>) return value != 0;
  else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<Number>) return saturated<T>(value);
  else return static_cast<T>(value);
}

/// Calls `body.template operator()<T>()` with an unsigned type of this size: for what only moves elements.
template <typename Body>
void visit_bits(size_t bytes, const Body& body) {
  switch (bytes) {
    case 1: return body.template operator()<uint8_t>();
    case 2: return body.template operator()<uint16_t>();
    case 4: return body.template operator()<uint32_t>();
    default: return body.template operator()<uint64_t>();
  }
}

}  // namespace hone::cpu
