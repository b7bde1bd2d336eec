// SPDX-License-Identifier: Apache-2.0
//
// The two loops of separable resampling over f32 or bf16: rows mixed with each other, and one row resampled along itself. Sums
// are f32; what is read and what is written has each its type. Compiled for every instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"
#include "tensor/dtype.h"

namespace hone::cpu {

inline constexpr int kMaxResampleTaps = 4;

/// y[i] = sum of weights[k] * rows[k][i].
struct MixArgs {
  const void* rows[kMaxResampleTaps];
  float weights[kMaxResampleTaps];
  int taps;
  int64_t count;
  void* y;
};

/// y[x][c] = sum of weights[k * columns + x] * row[indices[k * columns + x]][c], `inner` elements to a pixel.
struct StretchArgs {
  const void* row;
  const int32_t* indices;
  const float* weights;
  int taps;
  int64_t columns, inner;
  void* y;
};

struct ResampleKernels {
  void (*mix)(const MixArgs&);
  void (*stretch)(const StretchArgs&);
};

/// The kernels between f32 and bf16, either way, for an instruction set (at most the machine's).
ResampleKernels resample_kernels(DType from, DType to, Isa isa);

}  // namespace hone::cpu
