// SPDX-License-Identifier: Apache-2.0
//
// Sums and extremes of elements behind each other, of types that are not f32, where the extreme of floats stands, which of some floats
// pass a bar, and rows of floats added to running sums. Compiled for every instruction set.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

/// Of at least one element. An element that is not a number is larger and smaller than all others. No sum: of integers, which
/// are added up in 64 bits elsewhere.
template <typename T>
struct Folds {
  T (*largest)(const T* x, int64_t count);
  T (*smallest)(const T* x, int64_t count);
  T (*sum)(const T* x, int64_t count) = nullptr;
};

template <typename T>
inline constexpr bool kHasFolds = std::is_same_v<T, double> || std::is_same_v<T, int64_t> || std::is_same_v<T, int32_t>;

using RowFolds = std::tuple<Folds<double>, Folds<int64_t>, Folds<int32_t>>;
RowFolds row_folds(Isa isa);

/// A bit for each of up to 32 elements that is above the limit, or not a number; for each that is below it.
struct BarTests {
  uint32_t (*above)(const float* x, int64_t count, float limit);
  uint32_t (*below)(const float* x, int64_t count, float limit);
};
BarTests bar_tests(Isa isa);

/// Where the first or the last of the largest or smallest of at least one float stands. What is not a number beats nothing, and is
/// beaten by nothing where it comes first.
struct Places {
  int64_t (*largest)(const float* x, int64_t count, bool last);
  int64_t (*smallest)(const float* x, int64_t count, bool last);
  /// The same of `count` columns of n elements that lie `stride` apart, n below 2^31.
  void (*largest_of_columns)(const float* x, int64_t n, int64_t stride, int64_t count, bool last, int64_t* y);
  void (*smallest_of_columns)(const float* x, int64_t n, int64_t stride, int64_t count, bool last, int64_t* y);
};
Places extreme_places(Isa isa);

/// Adds a row to `sums` and writes the sums of before or behind.
struct RunningRows {
  void (*before)(const float* x, int64_t count, double* sums, float* y);
  void (*behind)(const float* x, int64_t count, double* sums, float* y);
};
RunningRows running_rows(Isa isa);

/// y += x.
using AddRow = void (*)(const float* x, int64_t count, float* y);
AddRow add_row(Isa isa);

}  // namespace hone::cpu
