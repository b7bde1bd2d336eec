// SPDX-License-Identifier: Apache-2.0
//
// Numpy's rules of matmul: vectors are matrices of one row or column, stacks of matrices are broadcast.
#pragma once

#include <vector>

#include "ir/op.h"

namespace hone {

/// Throws Error where the inner sizes or the stacks contradict each other.
Shape matmul_shape(const Shape& a, const Shape& b);

struct MatMulShape {
  Dims a, b, batches, batches_a, batches_b, result;
  int64_t m = 1, n = 1, k = 1;

  MatMulShape(Dims left, Dims right);

  /// Calls multiply(matrix of a, matrix of b, matrix of the result, which is zero) for each of the stack.
  template <typename T, typename Operand, typename Multiply>
  std::vector<T> run(const Operand* left, const Operand* right, const Multiply& multiply) const {
    const int64_t count = elements(batches);
    std::vector<T> c(static_cast<size_t>(count * m * n), T(0));
    for (int64_t i = 0; i < count; ++i)
      multiply(left + offset(batches_a, i, m * k), right + offset(batches_b, i, k * n), c.data() + i * m * n);
    return c;
  }

  /// Where the matrix of an operand begins that entry `batch` of the broadcast stack uses; `own` is the operand's stack.
  int64_t offset(std::span<const int64_t> own, int64_t batch, int64_t matrix) const;
};

}  // namespace hone
