// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/reduce/row_folds.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reduce/row_folds.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <bool kLargest, typename T>
HWY_INLINE T Better(T a, T b) {
  return (kLargest ? b > a : b < a) || b != b ? b : a;
}

/// In four accumulators; what is not a number is counted beside them, since vectors drop it.
template <bool kLargest, typename T>
T Extreme(const T* x, int64_t count) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto better = [](auto a, auto b) { return kLargest ? hn::Max(a, b) : hn::Min(a, b); };
  auto a = hn::Set(d, x[0]), b = a, c = a, e = a;
  auto odd = hn::Ne(a, a);
  const auto step = [&](auto& to, int64_t at) {
    const auto v = hn::LoadU(d, x + at);
    to = better(to, v);
    if constexpr (std::is_floating_point_v<T>) odd = hn::Or(odd, hn::Ne(v, v));
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    step(a, i), step(b, i + lanes), step(c, i + 2 * lanes), step(e, i + 3 * lanes);
  for (; i + lanes <= count; i += lanes) step(a, i);
  if (!hn::AllFalse(d, odd)) return std::numeric_limits<T>::quiet_NaN();
  a = better(better(a, b), better(c, e));
  T result = hn::GetLane(kLargest ? hn::MaxOfLanes(d, a) : hn::MinOfLanes(d, a));
  for (; i < count; ++i) result = Better<kLargest>(result, x[i]);
  return result;
}

/// The best float first, in four accumulators; then where it stands.
template <bool kLargest>
int64_t Place(const float* x, int64_t count, bool last) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Set(d, x[0]), b = a, c = a, e = a;
  const auto take = [&](auto& best, auto v) {
    best = hn::IfThenElse(kLargest ? hn::Gt(v, best) : hn::Lt(v, best), v, best);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    take(a, hn::LoadU(d, x + i)), take(b, hn::LoadU(d, x + i + lanes));
    take(c, hn::LoadU(d, x + i + 2 * lanes)), take(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= count; i += lanes) take(a, hn::LoadU(d, x + i));
  take(a, b), take(c, e), take(a, c);
  float best = hn::GetLane(kLargest ? hn::MaxOfLanes(d, a) : hn::MinOfLanes(d, a));
  for (; i < count; ++i) best = (kLargest ? x[i] > best : x[i] < best) ? x[i] : best;
  const auto wanted = hn::Set(d, best);
  if (last) {
    i = count;
    while (i >= lanes && hn::AllFalse(d, hn::Eq(hn::LoadU(d, x + i - lanes), wanted))) i -= lanes;
    while (i > 0 && x[i - 1] != best) --i;
    return std::max<int64_t>(i - 1, 0);  // none where the first is no number
  }
  for (i = 0; i + lanes <= count; i += lanes)
    if (const intptr_t at = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, x + i), wanted)); at >= 0) return i + at;
  for (; i < count; ++i)
    if (x[i] == best) return i;
  return 0;
}

template <bool kLargest, bool kLast>
int64_t PlaceInColumn(const float* x, int64_t n, int64_t stride) {
  float best = x[0];
  int64_t place = 0;
  for (int64_t k = 1; k < n; ++k) {
    const float value = x[k * stride];
    if ((kLargest ? value > best : value < best) || (kLast && value == best)) best = value, place = k;
  }
  return place;
}

/// Two vectors of columns side by side.
template <bool kLargest, bool kLast>
void PlacesInColumns(const float* x, int64_t n, int64_t stride, int64_t count, int64_t* y) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> whole;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN int32_t places[2 * hn::MaxLanes(d)];
  const auto take = [&](const float* from, auto step, auto& best, auto& place) {
    const auto v = hn::LoadU(d, from);
    auto better = kLargest ? hn::Gt(v, best) : hn::Lt(v, best);
    if constexpr (kLast) better = hn::Or(better, hn::Eq(v, best));
    best = hn::IfThenElse(better, v, best);
    place = hn::IfThenElse(hn::RebindMask(whole, better), step, place);
  };
  int64_t j = 0;
  for (; j + 2 * lanes <= count; j += 2 * lanes) {
    auto a = hn::LoadU(d, x + j), b = hn::LoadU(d, x + j + lanes);
    auto place_a = hn::Zero(whole), place_b = place_a;
    for (int64_t k = 1; k < n; ++k) {
      const auto step = hn::Set(whole, static_cast<int32_t>(k));
      take(x + k * stride + j, step, a, place_a), take(x + k * stride + j + lanes, step, b, place_b);
    }
    hn::Store(place_a, whole, places), hn::Store(place_b, whole, places + lanes);
    std::copy_n(places, 2 * lanes, y + j);
  }
  for (; j < count; ++j) y[j] = PlaceInColumn<kLargest, kLast>(x + j, n, stride);
}

template <bool kLargest>
void PlaceColumns(const float* x, int64_t n, int64_t stride, int64_t count, bool last, int64_t* y) {
  (last ? PlacesInColumns<kLargest, true> : PlacesInColumns<kLargest, false>)(x, n, stride, count, y);
}

Places PlacesOfExtremes() { return {Place<true>, Place<false>, PlaceColumns<true>, PlaceColumns<false>}; }

double Sum(const double* x, int64_t count) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, x + i)), b = hn::Add(b, hn::LoadU(d, x + i + lanes));
    c = hn::Add(c, hn::LoadU(d, x + i + 2 * lanes)), e = hn::Add(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= count; i += lanes) a = hn::Add(a, hn::LoadU(d, x + i));
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  for (; i < count; ++i) sum += x[i];
  return sum;
}

template <bool kAbove>
uint32_t Passing(const float* x, int64_t count, float limit) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto bar = hn::Set(d, limit);
  uint64_t passing = 0;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    uint64_t bits = 0;
    hn::StoreMaskBits(d, kAbove ? hn::Not(hn::Le(v, bar)) : hn::Lt(v, bar), reinterpret_cast<uint8_t*>(&bits));
    passing |= bits << i;
  }
  for (; i < count; ++i) passing |= uint64_t{kAbove ? !(x[i] <= limit) : x[i] < limit} << i;
  return static_cast<uint32_t>(passing);
}

template <bool kBefore>
void RunRow(const float* x, int64_t count, double* sums, float* y) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(wide));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto before = hn::LoadU(wide, sums + i);
    const auto behind = hn::Add(before, hn::PromoteTo(wide, hn::LoadU(narrow, x + i)));
    hn::StoreU(behind, wide, sums + i);
    hn::StoreU(hn::DemoteTo(narrow, kBefore ? before : behind), narrow, y + i);
  }
  for (; i < count; ++i) {
    const double before = sums[i];
    sums[i] += static_cast<double>(x[i]);
    y[i] = static_cast<float>(kBefore ? before : sums[i]);
  }
}

/// Floats from `i` on in vectors of `d`, as far as they fill them; returns where they end.
template <class Tag>
HWY_INLINE int64_t add_vectors(Tag d, const float* x, int64_t i, int64_t count, float* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, y + i);
  return i;
}

void Add(const float* x, int64_t count, float* y) {
  int64_t i = add_vectors(hn::ScalableTag<float>(), x, 0, count, y);
  i = add_vectors(hn::CappedTag<float, 4>(), x, i, count, y);
  add_vectors(hn::CappedTag<float, 1>(), x, i, count, y);
}

AddRow RowThatAdds() { return Add; }

RunningRows RowsThatRun() { return {RunRow<true>, RunRow<false>}; }

BarTests TestsOfBars() { return {Passing<true>, Passing<false>}; }

RowFolds FoldsOfRows() {
  return {Folds<double>{Extreme<true, double>, Extreme<false, double>, Sum},
          Folds<int64_t>{Extreme<true, int64_t>, Extreme<false, int64_t>},
          Folds<int32_t>{Extreme<true, int32_t>, Extreme<false, int32_t>}};
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(FoldsOfRows);
HWY_EXPORT(TestsOfBars);
HWY_EXPORT(RowsThatRun);
HWY_EXPORT(RowThatAdds);
HWY_EXPORT(PlacesOfExtremes);

BarTests bar_tests(Isa isa) { return HWY_DISPATCH_TABLE(TestsOfBars)[target_index(isa)](); }
Places extreme_places(Isa isa) { return HWY_DISPATCH_TABLE(PlacesOfExtremes)[target_index(isa)](); }
AddRow add_row(Isa isa) { return HWY_DISPATCH_TABLE(RowThatAdds)[target_index(isa)](); }
RunningRows running_rows(Isa isa) { return HWY_DISPATCH_TABLE(RowsThatRun)[target_index(isa)](); }
RowFolds row_folds(Isa isa) { return HWY_DISPATCH_TABLE(FoldsOfRows)[target_index(isa)](); }

}  // namespace hone::cpu
#endif
