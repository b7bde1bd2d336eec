// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/reduce/reductions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reduce/reductions.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "backends/cpu/support/lanes-inl.h"
#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

template <Reduction kKind>
HWY_INLINE V combine(V a, V x) {
  if constexpr (kKind == Reduction::max) return hn::Max(a, x);
  else if constexpr (kKind == Reduction::min) return hn::Min(a, x);
  else if constexpr (kKind == Reduction::prod) return hn::Mul(a, x);
  else if constexpr (kKind == Reduction::sum_abs) return hn::Add(a, hn::Abs(x));
  else if constexpr (kKind == Reduction::sum_square) return hn::MulAdd(x, x, a);
  else return hn::Add(a, x);
}

template <Reduction kKind>
constexpr float kNeutral = kKind == Reduction::max    ? kLowest
                           : kKind == Reduction::min  ? -kLowest
                           : kKind == Reduction::prod ? 1.0f
                                                      : 0.0f;

/// Columns in strips of four vectors: all taps or rows are added to a strip before the next.
template <Reduction kKind, typename From, typename To, typename Finish>
HWY_INLINE void reduce_strips(const From* x, const int64_t* offsets, int64_t count, int64_t columns, To* y,
                              const Finish& finish) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) {
    V s0 = hn::Set(d, kNeutral<kKind>), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t k = 0; k < count; ++k) {
      const From* from = x + offsets[k] + c;
      s0 = combine<kKind>(s0, load(d, from));
      s1 = combine<kKind>(s1, load(d, from + lanes));
      s2 = combine<kKind>(s2, load(d, from + 2 * lanes));
      s3 = combine<kKind>(s3, load(d, from + 3 * lanes));
    }
    store(finish(s0), d, y + c);
    store(finish(s1), d, y + c + lanes);
    store(finish(s2), d, y + c + 2 * lanes);
    store(finish(s3), d, y + c + 3 * lanes);
  }
  for (; c + lanes <= columns; c += lanes) {
    V sum = hn::Set(d, kNeutral<kKind>);
    for (int64_t k = 0; k < count; ++k) sum = combine<kKind>(sum, load(d, x + offsets[k] + c));
    store(finish(sum), d, y + c);
  }
  if (c == columns) return;
  const size_t rest = static_cast<size_t>(columns - c);
  V sum = hn::Set(d, kNeutral<kKind>);
  for (int64_t k = 0; k < count; ++k) sum = combine<kKind>(sum, load_some(d, x + offsets[k] + c, rest, 0));
  store_some(finish(sum), d, y + c, rest);
}

template <typename T>
void PoolMax(const PoolArgs& args) {
  reduce_strips<Reduction::max>(static_cast<const T*>(args.x), args.taps, args.tap_count, args.channels,
                                static_cast<T*>(args.y), [](V v) { return v; });
}

/// Channels in vectors of `d` from `c` on, as far as they fill them; returns where they end.
template <class Tag, typename T>
HWY_INLINE int64_t largest_bytes(Tag d, const PoolArgs& args, const T* x, T* y, int64_t c) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; c + lanes <= args.channels; c += lanes) {
    auto best = hn::Set(d, std::numeric_limits<T>::min());
    for (int64_t k = 0; k < args.tap_count; ++k) best = hn::Max(best, hn::LoadU(d, x + args.taps[k] + c));
    hn::StoreU(best, d, y + c);
  }
  return c;
}

template <typename T>
void PoolMaxBytes(const PoolArgs& args) {
  const T* x = static_cast<const T*>(args.x);
  T* y = static_cast<T*>(args.y);
  int64_t c = largest_bytes(hn::ScalableTag<T>(), args, x, y, 0);
  c = largest_bytes(hn::CappedTag<T, 16>(), args, x, y, c);
  for (; c < args.channels; ++c) {
    T best = std::numeric_limits<T>::min();
    for (int64_t k = 0; k < args.tap_count; ++k) best = std::max(best, x[args.taps[k] + c]);
    y[c] = best;
  }
}

template <typename T>
void PoolSum(const PoolArgs& args) {
  const V factor = hn::Set(D(), args.factor);
  reduce_strips<Reduction::sum>(static_cast<const T*>(args.x), args.taps, args.tap_count, args.channels,
                                static_cast<T*>(args.y), [&](V v) { return hn::Mul(v, factor); });
}

template <typename T, Reduction kKind>
void ReduceColumns(const ReduceArgs& args) {
  reduce_strips<kKind>(static_cast<const T*>(args.x), args.offsets, args.stretches, args.length, args.y,
                       [](V v) { return v; });
}

template <Reduction kKind>
HWY_INLINE float reduce_lanes(V v) {
  const D d;
  if constexpr (kKind == Reduction::max) return hn::GetLane(hn::MaxOfLanes(d, v));
  else if constexpr (kKind == Reduction::min) return hn::GetLane(hn::MinOfLanes(d, v));
  else if constexpr (kKind != Reduction::prod) return hn::GetLane(hn::SumOfLanes(d, v));
  HWY_ALIGN float lane[kMaxLanes];
  hn::Store(v, d, lane);
  return std::accumulate(lane, lane + hn::Lanes(d), 1.0f, std::multiplies<>());
}

template <Reduction kKind>
HWY_INLINE V join(V a, V b) {
  if constexpr (kKind == Reduction::sum_abs || kKind == Reduction::sum_square) return hn::Add(a, b);
  else return combine<kKind>(a, b);
}

template <typename T, Reduction kKind>
void ReduceRows(const ReduceArgs& args) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t result = 0; result < args.results; ++result) {
    V a = hn::Set(d, kNeutral<kKind>), b = a;
    for (int64_t k = 0; k < args.stretches; ++k) {
      const T* x = static_cast<const T*>(args.x) + args.starts[result] + args.offsets[k];
      int64_t i = 0;
      for (; i + 2 * lanes <= args.length; i += 2 * lanes) {
        a = combine<kKind>(a, load(d, x + i));
        b = combine<kKind>(b, load(d, x + i + lanes));
      }
      for (; i + lanes <= args.length; i += lanes) a = combine<kKind>(a, load(d, x + i));
      if (i < args.length)
        b = combine<kKind>(b, load_some(d, x + i, static_cast<size_t>(args.length - i), kNeutral<kKind>));
    }
    args.y[result] = reduce_lanes<kKind>(join<kKind>(a, b));
  }
}

PoolPixel Pool(bool maximum, DType dtype) {
  if (dtype == DType::u8) return PoolMaxBytes<uint8_t>;
  if (dtype == DType::i8) return PoolMaxBytes<int8_t>;
  if (dtype == DType::bf16) return maximum ? PoolMax<BFloat> : PoolSum<BFloat>;
  return maximum ? PoolMax<float> : PoolSum<float>;
}

template <typename T>
ReduceStretches reduce_in(Reduction kind, bool columns) {
  using R = Reduction;
  static constexpr ReduceStretches kRows[kReductions] = {ReduceRows<T, R::sum>,     ReduceRows<T, R::max>,
                                                         ReduceRows<T, R::min>,     ReduceRows<T, R::prod>,
                                                         ReduceRows<T, R::sum_abs>, ReduceRows<T, R::sum_square>};
  static constexpr ReduceStretches kColumns[kReductions] = {
      ReduceColumns<T, R::sum>,  ReduceColumns<T, R::max>,     ReduceColumns<T, R::min>,
      ReduceColumns<T, R::prod>, ReduceColumns<T, R::sum_abs>, ReduceColumns<T, R::sum_square>};
  return (columns ? kColumns : kRows)[static_cast<size_t>(kind)];
}

ReduceStretches Reduce(Reduction kind, bool columns, bool bf16) {
  return bf16 ? reduce_in<BFloat>(kind, columns) : reduce_in<float>(kind, columns);
}

ReduceStretches AddBytes(bool columns, bool is_signed) {
  if (is_signed) return columns ? ReduceColumns<int8_t, Reduction::sum> : ReduceRows<int8_t, Reduction::sum>;
  return columns ? ReduceColumns<uint8_t, Reduction::sum> : ReduceRows<uint8_t, Reduction::sum>;
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(Pool);
HWY_EXPORT(Reduce);
HWY_EXPORT(AddBytes);

PoolPixel pool_pixel(bool maximum, DType dtype, Isa isa) {
  return HWY_DISPATCH_TABLE(Pool)[target_index(isa)](maximum, dtype);
}

ReduceStretches reduce_stretches(Reduction kind, bool columns, DType dtype, Isa isa) {
  return HWY_DISPATCH_TABLE(Reduce)[target_index(isa)](kind, columns, dtype == DType::bf16);
}

ReduceStretches add_bytes(bool columns, DType dtype, Isa isa) {
  return HWY_DISPATCH_TABLE(AddBytes)[target_index(isa)](columns, dtype == DType::i8);
}

}  // namespace hone::cpu
#endif
