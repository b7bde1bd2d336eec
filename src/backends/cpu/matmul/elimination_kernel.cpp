// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/matmul/elimination_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/elimination_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <cmath>
#include <type_traits>
#include <utility>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kEliminationLanes>;

HWY_INLINE int64_t pivot_of(const Elimination& e, int64_t k) {
  const double* column = e.matrix + k;
  int64_t pivot = k;
  double most = std::abs(column[k * e.stride]);
  for (int64_t i = k + 1; i < e.n; ++i)
    if (const double size = std::abs(column[i * e.stride]); size > most) pivot = i, most = size;
  return pivot;
}

HWY_INLINE void swap_rows(const Elimination& e, int64_t a, int64_t b, int64_t first) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  double *one = e.matrix + a * e.stride, *other = e.matrix + b * e.stride;
  for (int64_t j = first / lanes * lanes; j < e.n; j += lanes) {
    const auto kept = hn::LoadU(d, one + j);
    hn::StoreU(hn::LoadU(d, other + j), d, one + j);
    hn::StoreU(kept, d, other + j);
  }
}

/// row -= factor * from for this many rows behind each other, from the vector on that column `first` is in.
template <int rows>
HWY_INLINE void subtract(const Elimination& e, int64_t row, const double* factors, int64_t from, int64_t first) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  double* to = e.matrix + row * e.stride;
  const double* with = e.matrix + from * e.stride;
  for (int64_t j = first / lanes * lanes; j < e.n; j += lanes) {
    const auto source = hn::LoadU(d, with + j);
    for (int i = 0; i < rows; ++i) {
      double* place = to + i * e.stride + j;
      hn::StoreU(hn::NegMulAdd(hn::Set(d, factors[i]), source, hn::LoadU(d, place)), d, place);
    }
  }
}

constexpr int kRows = 4;  // at a time, for one load of the row that is subtracted

/// Of rows [begin, end) their element of column k, times `scale`, times row k. `put` gives that element its new value: behind the
/// vectors, which would wait for it.
template <typename Put>
HWY_INLINE void subtract_rows(const Elimination& e, int64_t begin, int64_t end, int64_t k, double scale, int64_t first,
                              const Put& put) {
  double factors[kRows];
  const auto step = [&](auto count, int64_t row) {
    constexpr int rows = decltype(count)::value;
    for (int i = 0; i < rows; ++i) factors[i] = e.matrix[(row + i) * e.stride + k] * scale;
    subtract<rows>(e, row, factors, k, first);
    for (int i = 0; i < rows; ++i) put(e.matrix[(row + i) * e.stride + k], factors[i]);
  };
  for (; begin + kRows <= end; begin += kRows) step(std::integral_constant<int, kRows>(), begin);
  for (; begin < end; ++begin) step(std::integral_constant<int, 1>(), begin);
}

double Determinant(const Elimination& e) {
  double result = 1;
  for (int64_t k = 0; k < e.n; ++k) {
    const int64_t pivot = pivot_of(e, k);
    const double head = e.matrix[pivot * e.stride + k];
    if (head == 0) return 0;
    if (pivot != k) {
      swap_rows(e, k, pivot, k);
      result = -result;
    }
    result *= head;
    subtract_rows(e, k + 1, e.n, k, 1 / head, k + 1, [](double&, double) {});
  }
  return result;
}

/// Gauss and Jordan in place: a column that is done makes room for one of the inverse, whose columns are in other places where rows
/// changed theirs.
void Invert(const Elimination& e) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t k = 0; k < e.n; ++k) {
    const int64_t pivot = e.pivots[k] = pivot_of(e, k);
    if (pivot != k) swap_rows(e, k, pivot, 0);
    double* row = e.matrix + k * e.stride;
    const double share = 1 / row[k];
    for (int64_t j = 0; j < e.n; j += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, row + j), hn::Set(d, share)), d, row + j);
    row[k] = share;
    const auto put = [&](double& value, double factor) { value = -factor * share; };
    subtract_rows(e, 0, k, k, 1, 0, put);
    subtract_rows(e, k + 1, e.n, k, 1, 0, put);
  }
  for (int64_t k = e.n; k-- > 0;) e.places[k] = k;
  for (int64_t k = e.n; k-- > 0;) std::swap(e.places[k], e.places[e.pivots[k]]);
}

EliminationKernels KernelsOfElimination() { return {Determinant, Invert}; }

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(KernelsOfElimination);

EliminationKernels elimination_kernels(Isa isa) {
  return HWY_DISPATCH_TABLE(KernelsOfElimination)[target_index(isa)]();
}

}  // namespace hone::cpu
#endif
