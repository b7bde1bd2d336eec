// SPDX-License-Identifier: Apache-2.0
//
// The two loops of separable resampling over f32: rows mixed with each other, and one row resampled along itself. Compiled
// for every instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

inline constexpr int kMaxResampleTaps = 4;

/// y[i] = sum of weights[k] * rows[k][i].
struct MixArgs {
  const float* rows[kMaxResampleTaps];
  float weights[kMaxResampleTaps];
  int taps;
  int64_t count;
  float* y;
};

/// y[x][c] = sum of weights[k * columns + x] * row[indices[k * columns + x]][c], `inner` floats to a pixel.
struct StretchArgs {
  const float* row;
  const int32_t* indices;
  const float* weights;
  int taps;
  int64_t columns, inner;
  float* y;
};

struct ResampleKernels {
  void (*mix)(const MixArgs&);
  void (*stretch)(const StretchArgs&);
};

/// The kernels for an instruction set (at most the machine's).
ResampleKernels resample_kernels(Isa isa);

}  // namespace hone::cpu
