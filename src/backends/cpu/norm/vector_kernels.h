// SPDX-License-Identifier: Apache-2.0
//
// Portable vector kernels over f32, compiled for every instruction set by Highway and picked by ours, so that HONE_CPU_ISA
// caps them like the generated ones. Each works on a part that the caller cut out; none knows of workers.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

/// [n][inner] with `columns` of the inner axis to do, n > 0; stride between the elements of a column is `inner`.
struct SoftmaxLines {
  const float* x;
  float* y;
  int64_t n, inner, columns;
};
/// `count` rows of `n` floats each. Null scale or bias: left out.
struct NormArgs {
  const float* x;
  const float *scale, *bias;
  float* y;
  int64_t count, n;
  float epsilon;
};

struct VectorKernels {
  void (*softmax_row)(const SoftmaxLines&);
  void (*softmax_columns)(const SoftmaxLines&);
  void (*log_softmax_row)(const SoftmaxLines&);
  void (*log_softmax_columns)(const SoftmaxLines&);
  void (*layer_norm)(const NormArgs&);
  void (*rms_norm)(const NormArgs&);
  /// Rows divided by the sum of their sizes, or by the root of that of their squares; a row of zeros stays one.
  void (*l1_norm)(const NormArgs&);
  void (*l2_norm)(const NormArgs&);
};

/// The kernels for an instruction set (at most the machine's).
const VectorKernels& vector_kernels(Isa isa);

}  // namespace hone::cpu
