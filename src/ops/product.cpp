// SPDX-License-Identifier: Apache-2.0
//
// The matrix product that reference meanings share.
#include "ops/product.h"

#include <algorithm>

namespace hone::ops {

void multiply_add(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c) {
  constexpr int64_t kDepth = 256, kWidth = 512;
#pragma omp parallel for schedule(static) if (m * n * k > 1 << 18)
  for (int64_t i = 0; i < m; ++i) {
    float partial[kWidth];
    for (int64_t j0 = 0; j0 < n; j0 += kWidth) {
      const int64_t width = std::min(kWidth, n - j0);
      for (int64_t p0 = 0; p0 < k; p0 += kDepth) {
        std::fill_n(partial, width, 0.0f);
        for (int64_t p = p0; p < std::min(p0 + kDepth, k); ++p) {
          const float x = a[i * lda + p];
          const float* row = b + p * ldb + j0;
          for (int64_t j = 0; j < width; ++j) partial[j] += x * row[j];
        }
        for (int64_t j = 0; j < width; ++j) c[i * n + j0 + j] += partial[j];
      }
    }
  }
}

}  // namespace hone::ops
