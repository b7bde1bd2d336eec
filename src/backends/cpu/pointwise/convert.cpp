// SPDX-License-Identifier: Apache-2.0
//
// Plain loops, compiled once per instruction set; the compiler vectorises them. Only what it cannot see is written out: the
// processor's own conversion of halves, that of bf16, and the saturation of floats.
#include "backends/cpu/pointwise/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pointwise/convert.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/cpu/support/lanes-inl.h"
#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

constexpr int64_t kBlock = 256;  // elements that go through floats at a time

/// Floats to integers: brought into the range first, so that the conversion itself is defined for every lane.
template <typename To, typename From>
HWY_INLINE To saturate(From value) {
  constexpr From kLow = static_cast<From>(std::numeric_limits<To>::lowest());
  constexpr From kHigh = static_cast<From>(std::numeric_limits<To>::max());  // perhaps rounded up, to a power of two
  constexpr bool kExact = sizeof(To) * 8 <= std::numeric_limits<From>::digits;
  constexpr From kInside =
      kExact
          ? kHigh
          : kHigh - kHigh / static_cast<From>(uint64_t{1} << std::numeric_limits<From>::digits);  // the largest below
  const From number = value == value ? value : From(0);
  const From low = number > kLow ? number : kLow;
  const To inside = static_cast<To>(low < kInside ? low : kInside);
  return number >= kHigh ? std::numeric_limits<To>::max() : inside;
}

template <typename To, typename From>
HWY_INLINE To convert_one(From value) {
  if constexpr (std::is_same_v<To, bool>) return value != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return saturate<To>(value);
  else return static_cast<To>(value);
}

template <typename T>
constexpr bool kHalf = std::is_same_v<T, Half>;
template <typename T>
constexpr bool kSmall = kHalf<T> || std::is_same_v<T, BFloat>;

/// Halves to floats and back.
HWY_INLINE void widen_all(const Half* from, float* to, int64_t count) {
  int64_t i = 0;
#if HWY_TARGET <= HWY_AVX2  // before, Highway converts by hand, and no infinities
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from + i))), d, to + i);
#endif
  for (; i < count; ++i) to[i] = half_to_float(from[i].bits);
}
HWY_INLINE void widen_all(const BFloat* from, float* to, int64_t count) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store(load(d, from + i), d, to + i);
  for (; i < count; ++i) to[i] = bfloat_to_float(from[i].bits);
}
HWY_INLINE void narrow_all(const float* from, Half* to, int64_t count) {
  int64_t i = 0;
#if HWY_TARGET <= HWY_AVX2
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, from + i)), dh, reinterpret_cast<hwy::float16_t*>(to + i));
#endif
  for (; i < count; ++i) to[i].bits = float_to_half(from[i]);
}
HWY_INLINE void narrow_all(const float* from, BFloat* to, int64_t count) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store(load(d, from + i), d, to + i);
  for (; i < count; ++i) to[i].bits = float_to_bfloat(from[i]);
}

template <typename From, typename To>
void Convert(const void* source, void* target, int64_t count) {
  const From* from = static_cast<const From*>(source);
  To* to = static_cast<To*>(target);
  if constexpr (std::is_same_v<From, To>) {
    if (count != 0) std::memcpy(to, from, static_cast<size_t>(count) * sizeof(To));
  } else if constexpr (kSmall<From> && std::is_same_v<To, float>) {
    widen_all(from, to, count);
  } else if constexpr (std::is_same_v<From, float> && kSmall<To>) {
    narrow_all(from, to, count);
  } else if constexpr (std::is_same_v<From, bool>) {  // 0 or 1, as bytes hold them, which the compiler widens faster
    Convert<uint8_t, To>(source, target, count);
  } else if constexpr (kSmall<From> || kSmall<To>) {
    alignas(64) float block[kBlock];
    for (int64_t i = 0; i < count; i += kBlock) {
      const int64_t n = count - i < kBlock ? count - i : kBlock;
      Convert<From, float>(from + i, block, n);
      Convert<float, To>(block, to + i, n);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = convert_one<To>(from[i]);
  }
}

constexpr size_t kTypes = 13;  // every DType but string, in its order
using Row = std::array<ConvertElements, kTypes>;

template <typename From>
constexpr Row kRow = {Convert<From, float>,   Convert<From, Half>,     Convert<From, BFloat>,  Convert<From, double>,
                      Convert<From, int8_t>,  Convert<From, uint8_t>,  Convert<From, int16_t>, Convert<From, uint16_t>,
                      Convert<From, int32_t>, Convert<From, uint32_t>, Convert<From, int64_t>, Convert<From, uint64_t>,
                      Convert<From, bool>};

ConvertElements Loop(DType from, DType to) {
  static constexpr Row kTable[kTypes] = {kRow<float>,   kRow<Half>,     kRow<BFloat>,   kRow<double>,  kRow<int8_t>,
                                         kRow<uint8_t>, kRow<int16_t>,  kRow<uint16_t>, kRow<int32_t>, kRow<uint32_t>,
                                         kRow<int64_t>, kRow<uint64_t>, kRow<bool>};
  return kTable[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(Loop);

ConvertElements convert_elements(DType from, DType to, Isa isa) {
  return HWY_DISPATCH_TABLE(Loop)[target_index(isa)](from, to);
}

}  // namespace hone::cpu
#endif
