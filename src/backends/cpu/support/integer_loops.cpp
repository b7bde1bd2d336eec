// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/support/integer_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/support/integer_loops.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Words32 = hn::ScalableTag<uint32_t>;
using FourthBytes = hn::Rebind<uint8_t, Words32>;  // as many bytes as there are words of 32 bits
using Bytes = hn::ScalableTag<uint8_t>;

uint32_t SumOfBytes(const uint8_t* x, int64_t count, uint8_t flip) {
  const Bytes d;
  const hn::Repartition<uint64_t, Bytes> wide;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto turn = hn::Set(d, flip);
  auto sums = hn::Zero(wide);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) sums = hn::Add(sums, hn::SumsOf8(hn::Xor(hn::LoadU(d, x + i), turn)));
  auto sum = static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(wide, sums)));
  for (; i < count; ++i) sum += static_cast<uint8_t>(x[i] ^ flip);
  return sum;
}

void AddBytes(const uint8_t* x, int64_t count, uint8_t flip, uint32_t* sums) {
  const Words32 d;
  const FourthBytes bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto turn = hn::Set(bytes, flip);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), hn::PromoteTo(d, hn::Xor(hn::LoadU(bytes, x + i), turn))), d, sums + i);
  for (; i < count; ++i) sums[i] += static_cast<uint8_t>(x[i] ^ flip);
}

void CopyBytes(const uint8_t* x, int64_t count, uint8_t flip, uint8_t* to) {
  const Bytes d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto turn = hn::Set(d, flip);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Xor(hn::LoadU(d, x + i), turn), d, to + i);
  for (; i < count; ++i) to[i] = static_cast<uint8_t>(x[i] ^ flip);
}

template <typename T>
void WidenBytes(const uint8_t* x, int64_t count, int16_t* to) {
  const hn::ScalableTag<int16_t> d;
  const hn::Rebind<T, decltype(d)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(bytes, reinterpret_cast<const T*>(x) + i)), d, to + i);
  for (; i < count; ++i) to[i] = static_cast<T>(x[i]);
}

void JoinBytes(const uint8_t* const* rows, int64_t count, uint8_t flip, uint32_t* to) {
  const Words32 d;
  const FourthBytes bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto turn = hn::Set(d, flip * 0x01010101U);
  const auto row = [&](int k, int64_t i) { return hn::PromoteTo(d, hn::LoadU(bytes, rows[k] + i)); };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto low = hn::Or(row(0, i), hn::ShiftLeft<8>(row(1, i))),
               high = hn::Or(row(2, i), hn::ShiftLeft<8>(row(3, i)));
    hn::StoreU(hn::Xor(hn::Or(low, hn::ShiftLeft<16>(high)), turn), d, to + i);
  }
  for (; i < count; ++i) {
    to[i] = flip * 0x01010101U;
    for (int k = 0; k < 4; ++k) to[i] ^= static_cast<uint32_t>(rows[k][i]) << 8 * k;
  }
}

void JoinWords(const uint8_t* const* rows, int64_t count, uint8_t flip, uint32_t* to) {
  const hn::RebindToSigned<Words32> d;
  const hn::Rebind<int8_t, Words32> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto turn = hn::Set(bytes, static_cast<int8_t>(flip));
  const auto row = [&](int k, int64_t i) {
    return hn::PromoteTo(d, hn::Xor(hn::LoadU(bytes, reinterpret_cast<const int8_t*>(rows[k]) + i), turn));
  };
  const auto low = hn::Set(d, 0xffff);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Or(hn::And(row(0, i), low), hn::ShiftLeft<16>(row(1, i))), d, reinterpret_cast<int32_t*>(to) + i);
  for (; i < count; ++i) {
    const auto word = [&](int k) {
      return static_cast<uint32_t>(static_cast<uint16_t>(int16_t{static_cast<int8_t>(rows[k][i] ^ flip)}));
    };
    to[i] = word(0) | word(1) << 16;
  }
}

IntegerLoops LoopsOfIntegers() {
  return {SumOfBytes, AddBytes, CopyBytes, WidenBytes<uint8_t>, WidenBytes<int8_t>, JoinBytes, JoinWords};
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(LoopsOfIntegers);

IntegerLoops integer_loops(Isa isa) { return HWY_DISPATCH_TABLE(LoopsOfIntegers)[target_index(isa)](); }

}  // namespace hone::cpu
#endif
