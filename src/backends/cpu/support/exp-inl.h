// SPDX-License-Identifier: Apache-2.0
//
// The exponential of what is not above 0, as a softmax wants it. Included once per instruction set, behind foreach_target.
#if defined(HONE_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HONE_EXP_INL_H_
#undef HONE_EXP_INL_H_
#else
#define HONE_EXP_INL_H_
#endif

#include "backends/cpu/support/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

/// exp(x) of x <= 0, off by less than two units in the last place; 0 where that is below 2^-126, NaN of NaN.
HWY_INLINE V exp_below_zero(D d, V x) {
  constexpr float kLog2E = 1.44269504F, kLn2High = 0.693145752F, kLn2Low = 1.42860677e-6F;
  constexpr float kLeast = -87.336544F;      // ln 2^-126
  constexpr float kToInteger = 12583039.0F;  // 1.5 x 2^23 leaves no fraction; + 127: the last bits are 2^k's exponent
  const V shifted = hn::MulAdd(x, hn::Set(d, kLog2E), hn::Set(d, kToInteger));
  const V k = hn::Sub(shifted, hn::Set(d, kToInteger));
  const V r = hn::NegMulAdd(k, hn::Set(d, kLn2Low), hn::NegMulAdd(k, hn::Set(d, kLn2High), x));
  // (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2, least relative error of exp(r): 3.1e-9 (Lawson's weights).
  V p = hn::Set(d, 1.38144667e-3F);
  for (const float coefficient : {8.36878043e-3F, 4.16683942e-2F, 0.166665201F, 0.499999934F, 1.0F, 1.0F})
    p = hn::MulAdd(p, r, hn::Set(d, coefficient));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(hn::RebindToSigned<D>(), shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kLeast)), hn::Mul(p, power));
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();

#endif
