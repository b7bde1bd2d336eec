// SPDX-License-Identifier: Apache-2.0
//
// Both halves are read once and written once.
#include "backends/cpu/attention/rotary_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention/rotary_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include "backends/cpu/support/lanes-inl.h"
#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

template <typename T>
HWY_INLINE void rotate(const RotaryArgs<T>& args) {
  const D d;
  const size_t half = static_cast<size_t>(args.half), lanes = hn::Lanes(d);
  for (int64_t vector = 0; vector < args.count; ++vector) {
    const T *x = args.x + vector * args.step, *cosines = args.cosines + vector * args.angle_step,
            *sines = args.sines + vector * args.angle_step;
    T* y = args.y + vector * args.step;
    const auto part = [&](size_t i, const auto& get, const auto& put) HWY_ATTR {
      const V first = get(x + i), second = get(x + half + i);
      put(hn::NegMulAdd(second, get(sines + i), hn::Mul(first, get(cosines + i))), y + i);
      put(hn::MulAdd(first, get(sines + half + i), hn::Mul(second, get(cosines + half + i))), y + half + i);
    };
    size_t i = 0;
    for (; i + lanes <= half; i += lanes)
      part(
          i, [&](const T* from) HWY_ATTR { return load(d, from); }, [&](V v, T* to) HWY_ATTR { store(v, d, to); });
    if (i < half)
      part(
          i, [&](const T* from) HWY_ATTR { return load_some(d, from, half - i, 0); },
          [&](V v, T* to) HWY_ATTR { store_some(v, d, to, half - i); });
  }
}

void RotateF32(const RotaryArgs<float>& args) { rotate(args); }
void RotateBf16(const RotaryArgs<BFloat>& args) { rotate(args); }

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(RotateF32);
HWY_EXPORT(RotateBf16);

template <>
RotaryKernel<float> rotary_kernel(Isa isa) {
  return HWY_DISPATCH_TABLE(RotateF32)[target_index(isa)];
}
template <>
RotaryKernel<BFloat> rotary_kernel(Isa isa) {
  return HWY_DISPATCH_TABLE(RotateBf16)[target_index(isa)];
}

}  // namespace hone::cpu
#endif
