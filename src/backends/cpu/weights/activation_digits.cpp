// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/weights/activation_digits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/weights/activation_digits.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/support/lanes-inl.h"
#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

constexpr int64_t kChunk = 64;  // elements whose integers are kept at a time
constexpr float kLeast = 0x1p-100F, kMost = 0x1p126F;

/// Of the magnitudes, compared as their bits are: a NaN is above all.
HWY_INLINE float largest(const float* x, int64_t count) {
  const D d;
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto most = hn::Zero(di);
  const auto meet = [&](V v) HWY_ATTR { most = hn::Max(most, hn::BitCast(di, hn::Abs(v))); };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) meet(load(d, x + i));
  if (i < count) meet(load_some(d, x + i, static_cast<size_t>(count - i), 0));
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, most)));
}

/// Elements as integers, rounded to even; behind the last one zeros.
HWY_INLINE void integers(const float* x, int64_t count, int64_t padded, float steps, int32_t* to) {
  const D d;
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V factor = hn::Set(d, steps);
  std::fill(to + count / lanes * lanes, to + padded, 0);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::NearestInt(hn::Mul(load(d, x + i), factor)), di, to + i);
  if (i == count) return;
  HWY_ALIGN int32_t last[kMaxLanes];
  hn::Store(hn::NearestInt(hn::Mul(load_some(d, x + i, static_cast<size_t>(count - i), 0), factor)), di, last);
  std::copy(last, last + (count - i), to + i);
}

using Ints = hn::CappedTag<int32_t, DigitFormat::kUnit>;

/// Vectors of sums, one for each digit.
struct Sums {
  hn::Vec<Ints> of[DigitFormat::kDigits];
};

HWY_INLINE void split_unit(const int32_t* values, Sums& sums, int8_t* to) {
  constexpr int64_t kUnit = DigitFormat::kUnit;
  const Ints d;
  const hn::Rebind<int8_t, Ints> bytes;
  for (int64_t i = 0; i < kUnit; i += static_cast<int64_t>(hn::Lanes(d))) {
    auto value = hn::LoadU(d, values + i);
#pragma GCC unroll 3
    for (int digit = DigitFormat::kDigits - 1; digit >= 0; --digit) {
      const auto low = hn::ShiftRight<24>(hn::ShiftLeft<24>(value));
      sums.of[digit] = hn::Add(sums.of[digit], low);
      hn::StoreU(hn::DemoteTo(bytes, low), bytes, to + digit * kUnit + i);
      value = hn::ShiftRight<8>(hn::Sub(value, low));
    }
  }
}

/// Balanced digits reach 127 (2^16 + 2^8 + 1), a little less than 2^23.
HWY_INLINE float step_of(float most) {
  const auto exponent = std::bit_cast<uint32_t>(most * (1 + 0x1p-7F)) & 0x7f800000U;
  return std::bit_cast<float>(exponent) * 0x1p-22F;
}

bool SplitBlock(const float* x, int64_t count, std::byte* to) {
  const float most = largest(x, count);
  const bool fits = most == 0 || (most >= kLeast && most <= kMost);
  const float step = fits && most != 0 ? step_of(most) : 0, steps = step == 0 ? 0 : 1 / step;
  const Ints d;
  Sums sums{{hn::Zero(d), hn::Zero(d), hn::Zero(d)}};
  std::byte* unit = to + DigitFormat::kHeadBytes;
  for (int64_t first = 0; fits && first < count; first += kChunk) {
    const int64_t given = std::min(kChunk, count - first),
                  units = (given + DigitFormat::kUnit - 1) / DigitFormat::kUnit;
    HWY_ALIGN int32_t values[kChunk];
    integers(x + first, given, units * DigitFormat::kUnit, steps, values);
    for (int64_t i = 0; i < units; ++i, unit += DigitFormat::kUnitBytes)
      split_unit(values + i * DigitFormat::kUnit, sums, reinterpret_cast<int8_t*>(unit));
  }
  double sum = 0;
  for (int digit = 0; digit < DigitFormat::kDigits; ++digit) {
    const int32_t bytes = hn::GetLane(hn::SumOfLanes(d, sums.of[digit]));
    const auto start = static_cast<int32_t>(-DigitFormat::kMiddle * bytes);
    std::memcpy(to + DigitFormat::start(digit), &start, sizeof start);
    sum = sum * 256 + bytes;
  }
  const auto total = static_cast<float>(sum * step);
  std::memcpy(to + DigitFormat::kStep, &step, sizeof step);
  std::memcpy(to + DigitFormat::kSum, &total, sizeof total);
  return fits && std::isfinite(total);
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(SplitBlock);

SplitDigits split_digits(Isa isa) { return HWY_DISPATCH_TABLE(SplitBlock)[target_index(isa)]; }

}  // namespace hone::cpu
#endif
