// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices of f64 and of integers, which wrap, compiled for every instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"
#include "tensor/dtype.h"

namespace hone::cpu {

/// c[i][j] = bias[j] + sum over p of a[i][p] * b[p][j], all elements of one type. Rows of b and c are `n` elements apart, of a `k`.
struct ProductArgs {
  const void *a, *b;
  const void* bias;  // null: none
  void* c;
  int64_t rows, columns, k, n;
};
using TypedProduct = void (*)(const ProductArgs&);

bool has_typed_product(DType dtype);
TypedProduct typed_product(DType dtype, Isa isa);

}  // namespace hone::cpu
