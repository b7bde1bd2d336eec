// SPDX-License-Identifier: Apache-2.0
//
// Sums, maxima and their like over rows and columns of f32, bf16 or bytes, and the windows of pools; arithmetic is in f32. Compiled
// for every instruction set by Highway.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "backends/cpu/jit/isa.h"
#include "tensor/dtype.h"

namespace hone::cpu {

/// Taps are offsets of input pixels in elements; a pixel is `channels` elements. The result has the input's type. Of bytes there is
/// only the maximum.
struct PoolArgs {
  const void* x;
  const int64_t* taps;
  int64_t tap_count, channels;
  float factor;  // of the sum; unused by the maximum
  void* y;
};
using PoolPixel = void (*)(const PoolArgs&);

enum class Reduction : uint8_t { sum, max, min, prod, sum_abs, sum_square };
inline constexpr size_t kReductions = 6;
constexpr std::array<std::string_view, kReductions> field_names(Reduction) {
  return {"sum", "max", "min", "prod", "sum_abs", "sum_square"};
}

/// Accumulates `stretches` of `length` elements each into one float, for every one of `results`, or (columns) rows of `length` elements
/// at `offsets` into one row of floats.
struct ReduceArgs {
  const void* x;
  const int64_t* offsets;  // in elements, one per contiguous stretch
  int64_t stretches, length;
  float* y;
  const int64_t* starts = nullptr;  // of the results, in elements; of rows alone
  int64_t results = 1;
};
using ReduceStretches = void (*)(const ReduceArgs&);

/// The kernels for f32 or bf16 and an instruction set (at most the machine's).
PoolPixel pool_pixel(bool maximum, DType dtype, Isa isa);
ReduceStretches reduce_stretches(Reduction kind, bool columns, DType dtype, Isa isa);
/// The sum of bytes.
ReduceStretches add_bytes(bool columns, DType dtype, Isa isa);

}  // namespace hone::cpu
