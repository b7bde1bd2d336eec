// SPDX-License-Identifier: Apache-2.0
//
// The one fast loop of the reference code: c += a * b for floats with any strides. MatMul, Gemm, Linear and both
// convolutions come down to it, so that checks of large models take seconds.
#pragma once

#include <cstdint>

namespace hone {

/// A matrix in memory: element (i, j) is data[i * row + j * column].
struct MatrixView {
  const float* data;
  int64_t row, column;
};

/// c[m,n] += a[m,k] * b[k,n]; `c` has contiguous rows `c_row` apart. Single thread.
void add_matmul(int64_t m, int64_t n, int64_t k, MatrixView a, MatrixView b, float* c, int64_t c_row);
/// The same, rows or columns spread over the OpenMP team.
void add_matmul_parallel(int64_t m, int64_t n, int64_t k, MatrixView a, MatrixView b, float* c, int64_t c_row);

}  // namespace hone
