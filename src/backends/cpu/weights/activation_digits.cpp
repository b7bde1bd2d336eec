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

using Ints = hn::RebindToSigned<D>;

/// Vectors of sums, one for each digit.
struct Sums {
  hn::Vec<Ints> of[DigitFormat::kDigits];
};

/// A vector of elements as integers: their digits go to the units that have begun by `end`.
HWY_INLINE void split_vector(hn::Vec<Ints> value, Sums& sums, int8_t* units, const int8_t* end) {
  constexpr int64_t kUnit = DigitFormat::kUnit, kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  constexpr int64_t kPart = kLanes < kUnit ? kLanes : kUnit;
  const hn::Rebind<int8_t, Ints> bytes;
  HWY_ALIGN int8_t digits[kMaxLanes];
#pragma GCC unroll 3
  for (int digit = DigitFormat::kDigits - 1; digit >= 0; --digit) {
    const auto low = hn::ShiftRight<24>(hn::ShiftLeft<24>(value));
    sums.of[digit] = hn::Add(sums.of[digit], low);
    hn::StoreU(hn::DemoteTo(bytes, low), bytes, digits);
    int8_t* to = units + digit * kUnit;
#pragma GCC unroll 2
    for (int64_t part = 0; part < kLanes; part += kPart, to += DigitFormat::kUnitBytes)
      if (to < end) std::memcpy(to, digits + part, kPart);
    value = hn::ShiftRight<8>(hn::Sub(value, low));
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
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto nothing = hn::Zero(Ints());
  Sums sums{{nothing, nothing, nothing}};
  const V factor = hn::Set(d, steps);
  const int64_t units = (count + DigitFormat::kUnit - 1) / DigitFormat::kUnit;
  auto* first = reinterpret_cast<int8_t*>(to + DigitFormat::kHeadBytes);
  const int8_t* end = first + units * DigitFormat::kUnitBytes;
  for (int64_t i = 0; fits && i < units * DigitFormat::kUnit; i += lanes) {
    const int64_t left = count - i;
    const V given =
        left >= lanes ? load(d, x + i) : load_some(d, x + i, static_cast<size_t>(std::max<int64_t>(left, 0)), 0);
    int8_t* unit = first + i / DigitFormat::kUnit * DigitFormat::kUnitBytes + i % DigitFormat::kUnit;
    split_vector(hn::NearestInt(hn::Mul(given, factor)), sums, unit, end);
  }
  double sum = 0;
  for (int digit = 0; digit < DigitFormat::kDigits; ++digit) {
    const int32_t bytes = hn::GetLane(hn::SumOfLanes(Ints(), sums.of[digit]));
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
