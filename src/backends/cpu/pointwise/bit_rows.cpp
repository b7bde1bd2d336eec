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

struct Both {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::And(a, b);
  }
};
struct Either {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Or(a, b);
  }
};
struct One {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Xor(a, b);
  }
};
struct Invert {
  template <class V>
  HWY_INLINE V operator()(V a, V) const {
    return hn::Not(a);
  }
};

/// Bytes from `i` on in vectors of `d`, as far as they fill them; returns where they end.
template <class Function, class Tag>
HWY_INLINE int64_t fill(Tag d, const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t i, int64_t bytes) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= bytes; i += lanes) hn::StoreU(Function()(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  return i;
}

template <class Function>
void Row(const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t bytes) {
  const int64_t vectors = fill<Function>(hn::ScalableTag<uint8_t>(), a, b, y, 0, bytes);
  fill<Function>(hn::CappedTag<uint8_t, 1>(), a, b, y, vectors, bytes);
}

BitRows Rows() { return {Row<Both>, Row<Either>, Row<One>, Row<Invert>}; }

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
