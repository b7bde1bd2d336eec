// SPDX-License-Identifier: Apache-2.0
//
// Both operands are packed into panels (rows of 4, columns of 8, depth of up to 256) so that the inner loop reads straight
// ahead and keeps a 4x8 block of sums in registers. Sums of each depth block are float, added to c block by block.
#include "ops/gemm_loops.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace hone {
namespace {

constexpr int64_t kRows = 4, kColumns = 8, kDepth = 256, kWidth = 512;
using Vector = float __attribute__((vector_size(16)));

/// [k][kRows] panels of a, zero where rows are missing.
void pack_rows(int64_t rows, int64_t depth, MatrixView a, float* to) {
  for (int64_t i = 0; i < rows; i += kRows)
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t r = 0; r < kRows; ++r) *to++ = i + r < rows ? a.data[(i + r) * a.row + p * a.column] : 0.0F;
}

void pack_columns(int64_t depth, int64_t columns, MatrixView b, float* to) {
  for (int64_t j = 0; j < columns; j += kColumns) {
    const int64_t count = std::min(kColumns, columns - j);
    for (int64_t p = 0; p < depth; ++p, to += kColumns) {
      const float* from = b.data + p * b.row + j * b.column;
      for (int64_t q = 0; q < count; ++q) to[q] = from[q * b.column];
      std::fill(to + count, to + kColumns, 0.0F);
    }
  }
}

void add_block(int64_t depth, const float* a, const float* b, int64_t rows, int64_t columns, float* c, int64_t c_row) {
  Vector sums[kRows][2] = {};
  for (int64_t p = 0; p < depth; ++p, a += kRows, b += kColumns) {
    Vector low, high;
    std::memcpy(&low, b, sizeof(low));
    std::memcpy(&high, b + 4, sizeof(high));
    for (int64_t r = 0; r < kRows; ++r) {
      sums[r][0] += a[r] * low;
      sums[r][1] += a[r] * high;
    }
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t q = 0; q < columns; ++q) c[r * c_row + q] += sums[r][q / 4][q % 4];
}

int64_t padded(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

}  // namespace

void add_matmul(int64_t m, int64_t n, int64_t k, MatrixView a, MatrixView b, float* c, int64_t c_row) {
  std::vector<float> a_panels(static_cast<size_t>(padded(m, kRows) * std::min(k, kDepth)));
  std::vector<float> b_panels(static_cast<size_t>(padded(std::min(n, kWidth), kColumns) * std::min(k, kDepth)));
  for (int64_t p = 0; p < k; p += kDepth) {
    const int64_t depth = std::min(kDepth, k - p);
    pack_rows(m, depth, {a.data + p * a.column, a.row, a.column}, a_panels.data());
    for (int64_t j = 0; j < n; j += kWidth) {
      const int64_t width = std::min(kWidth, n - j);
      pack_columns(depth, width, {b.data + p * b.row + j * b.column, b.row, b.column}, b_panels.data());
      for (int64_t i = 0; i < m; i += kRows)
        for (int64_t q = 0; q < width; q += kColumns)
          add_block(depth, a_panels.data() + i * depth, b_panels.data() + q * depth, std::min(kRows, m - i),
                    std::min(kColumns, width - q), c + i * c_row + j + q, c_row);
    }
  }
}

void add_matmul_parallel(int64_t m, int64_t n, int64_t k, MatrixView a, MatrixView b, float* c, int64_t c_row) {
  constexpr int64_t kStep = 128;
  if (m * n * k < (int64_t{1} << 18)) return add_matmul(m, n, k, a, b, c, c_row);
  if (m >= n) {
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < m; i += kStep)
      add_matmul(std::min(kStep, m - i), n, k, {a.data + i * a.row, a.row, a.column}, b, c + i * c_row, c_row);
  } else {
#pragma omp parallel for schedule(dynamic)
    for (int64_t j = 0; j < n; j += kStep)
      add_matmul(m, std::min(kStep, n - j), k, a, {b.data + j * b.column, b.row, b.column}, c + j, c_row);
  }
}

}  // namespace hone
