// SPDX-License-Identifier: Apache-2.0
//
// The matrix product that reference meanings share.
#pragma once

#include <cstdint>

namespace hone::ops {

/// C[m,n] (row stride n) += A[m,k] (row stride lda) * B[k,n] (row stride ldb).
void multiply_add(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c);

}  // namespace hone::ops
