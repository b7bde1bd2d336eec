// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/norm/double_softmax_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm/double_softmax_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kDoubleSlack>;

/// The largest, or what is not finite where the result has no number: an infinite largest, a NaN anywhere.
HWY_INLINE double Largest(const double* row, int64_t padded) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto top = hn::Set(d, -std::numeric_limits<double>::infinity());
  auto numbers = hn::Eq(top, top);
  for (int64_t i = 0; i < padded; i += lanes) {
    const auto x = hn::LoadU(d, row + i);
    top = hn::Max(top, x), numbers = hn::And(numbers, hn::Eq(x, x));
  }
  return hn::AllTrue(d, numbers) ? hn::GetLane(hn::MaxOfLanes(d, top)) : std::numeric_limits<double>::quiet_NaN();
}

template <bool kLog>
void Softmax(double* row, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), padded = (n + lanes - 1) / lanes * lanes;
  std::fill(row + n, row + padded, -std::numeric_limits<double>::infinity());
  const double largest = Largest(row, padded);
  if (!std::isfinite(largest)) return std::fill(row, row + n, std::numeric_limits<double>::quiet_NaN());
  const auto top = hn::Set(d, largest);
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < padded; i += lanes) {
    const auto e = hn::Exp(d, hn::Sub(hn::LoadU(d, row + i), top));
    if constexpr (!kLog) hn::StoreU(e, d, row + i);
    sum = hn::Add(sum, e);
  }
  const double total = hn::GetLane(hn::SumOfLanes(d, sum));
  const auto factor = hn::Set(d, 1 / total), shift = hn::Set(d, largest + std::log(total));
  for (int64_t i = 0; i < padded; i += lanes) {
    const auto x = hn::LoadU(d, row + i);
    hn::StoreU(kLog ? hn::Sub(x, shift) : hn::Mul(x, factor), d, row + i);
  }
}

DoubleSoftmax KernelsOfDoubles() { return {Softmax<false>, Softmax<true>}; }

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(KernelsOfDoubles);

DoubleSoftmax double_softmax_kernels(Isa isa) { return HWY_DISPATCH_TABLE(KernelsOfDoubles)[target_index(isa)](); }

}  // namespace hone::cpu
#endif
