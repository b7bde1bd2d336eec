// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/learners/vector_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/learners/vector_sums.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

template <bool distance>
HWY_INLINE V Added(V sum, V x, V v) {
  if constexpr (!distance) return hn::MulAdd(x, v, sum);
  const V apart = hn::Sub(x, v);
  return hn::MulAdd(apart, apart, sum);
}

/// Four vectors of sums stay in registers for all features, which hides what an addition takes; of the rest each has four sums.
template <bool distance>
void Sums(const float* x, int64_t features, const float* panel, int64_t room, float* sums) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t v = 0;
  for (; v + 4 * lanes <= room; v += 4 * lanes) {
    V a = hn::Zero(d), b = a, c = a, e = a;
    for (int64_t i = 0; i < features; ++i) {
      const V value = hn::Set(d, x[i]);
      const float* from = panel + i * room + v;
      a = Added<distance>(a, value, hn::LoadU(d, from));
      b = Added<distance>(b, value, hn::LoadU(d, from + lanes));
      c = Added<distance>(c, value, hn::LoadU(d, from + 2 * lanes));
      e = Added<distance>(e, value, hn::LoadU(d, from + 3 * lanes));
    }
    hn::StoreU(a, d, sums + v);
    hn::StoreU(b, d, sums + v + lanes);
    hn::StoreU(c, d, sums + v + 2 * lanes);
    hn::StoreU(e, d, sums + v + 3 * lanes);
  }
  for (; v < room; v += lanes) {
    V a = hn::Zero(d), b = a, c = a, e = a;
    const auto add = [&](V sum, int64_t i) {
      return Added<distance>(sum, hn::Set(d, x[i]), hn::LoadU(d, panel + i * room + v));
    };
    int64_t i = 0;
    for (; i + 4 <= features; i += 4) a = add(a, i), b = add(b, i + 1), c = add(c, i + 2), e = add(e, i + 3);
    for (; i < features; ++i) a = add(a, i);
    hn::StoreU(hn::Add(hn::Add(a, b), hn::Add(c, e)), d, sums + v);
  }
}

float Dot(const float* a, const float* b, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum = hn::Zero(d), other = sum;
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
    other = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), other);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, other)));
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

VectorSums AllSums() { return {Sums<false>, Sums<true>, Dot}; }

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(AllSums);

VectorSums vector_sums(Isa isa) { return HWY_DISPATCH_TABLE(AllSums)[target_index(isa)](); }

}  // namespace hone::cpu
#endif
