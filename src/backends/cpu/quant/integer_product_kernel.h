// SPDX-License-Identifier: Apache-2.0
//
// Exact sums of products of two tensors of bytes, matrix by matrix, which are both made as the network runs: integer_kernel.h begins
// with the arithmetic. First every matrix of B is packed in panels; then the workers share strips of rows of A, each copied into the
// form that is multiplied, with the sums of its rows.
#pragma once

#include <memory>

#include "backends/cpu/quant/integer_kernel.h"
#include "backends/cpu/tactic_table.h"

namespace hone::cpu {

struct ProductShape {
  int64_t m = 1, n = 1, k = 1;
  bool signed_a = false, signed_b = false;
  bool transposed_b = false;                // matrices of B are [N, K]
  std::vector<int64_t> a_matrix, b_matrix;  // which one each matrix of the result is made of
  int64_t b_matrices = 1;

  /// For what depends on rows, columns and depth alone.
  IntegerShape tile() const {
    return {.depth = k,
            .columns = n,
            .in = {m},
            .out = {m},
            .filter = {1},
            .strides = {1},
            .dilations = {1},
            .pads = {0},
            .signed_a = signed_a};
  }
};

/// Constants, as far as there are any: the factor, then the bias, of whole panels.
std::shared_ptr<const CpuKernel> make_product_kernel(const ProductShape& shape, const IntegerConfig& config,
                                                     const IntegerProductCode& code, const KernelShapes& shapes,
                                                     const CpuInfo& info);

}  // namespace hone::cpu
