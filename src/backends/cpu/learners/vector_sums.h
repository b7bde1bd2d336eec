// SPDX-License-Identifier: Apache-2.0
//
// Sums over the features of a row, for many vectors at once, compiled for every instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

struct VectorSums {
  /// sums[v] = sum over features i of x[i] * panel[i * room + v], for v < room, a multiple of 16.
  void (*products)(const float* x, int64_t features, const float* panel, int64_t room, float* sums);
  /// The same of (x[i] - panel[i * room + v])^2.
  void (*distances)(const float* x, int64_t features, const float* panel, int64_t room, float* sums);
  /// The sum of a[i] * b[i].
  float (*dot)(const float* a, const float* b, int64_t count);
};
VectorSums vector_sums(Isa isa);

}  // namespace hone::cpu
