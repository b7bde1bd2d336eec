// SPDX-License-Identifier: Apache-2.0
//
// Elimination with the largest pivot of each column, in f64 whatever the matrices hold, as by the reference: a matrix that is nearly
// singular loses digits that f32 has not got.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

/// Rows begin at multiples of this many elements: whole vectors.
inline constexpr int64_t kEliminationLanes = 8;

/// A square matrix that is overwritten. What lies between a row's end and the next row is calculated too, and never read.
struct Elimination {
  double* matrix;
  int64_t n, stride;
  // n of each, of the inverse alone: the row that row k changed places with; where in the matrix column k of the inverse is.
  int64_t *pivots, *places;
};

struct EliminationKernels {
  double (*determinant)(const Elimination&);
  void (*invert)(const Elimination&);
};
EliminationKernels elimination_kernels(Isa isa);

}  // namespace hone::cpu
