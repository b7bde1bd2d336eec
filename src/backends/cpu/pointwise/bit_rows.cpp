// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/pointwise/bit_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pointwise/bit_rows.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

enum class Bits { both, either, one, invert };

template <Bits kBits, class V>
HWY_INLINE V combine(V a, V b) {
  if constexpr (kBits == Bits::both) return hn::And(a, b);
  else if constexpr (kBits == Bits::either) return hn::Or(a, b);
  else if constexpr (kBits == Bits::one) return hn::Xor(a, b);
  else return hn::Not(a);
}

/// Bytes from `i` on in vectors of `d`, as far as they fill them; returns where they end.
template <Bits kBits, class Tag>
HWY_INLINE int64_t fill(Tag d, const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t i, int64_t bytes) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= bytes; i += lanes) hn::StoreU(combine<kBits>(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  return i;
}

template <Bits kBits>
void Row(const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t bytes) {
  const int64_t vectors = fill<kBits>(hn::ScalableTag<uint8_t>(), a, b, y, 0, bytes);
  fill<kBits>(hn::CappedTag<uint8_t, 1>(), a, b, y, vectors, bytes);
}

BitRows Rows() { return {Row<Bits::both>, Row<Bits::either>, Row<Bits::one>, Row<Bits::invert>}; }

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(Rows);

BitRows bit_rows(Isa isa) { return HWY_DISPATCH_TABLE(Rows)[target_index(isa)](); }

}  // namespace hone::cpu
#endif
