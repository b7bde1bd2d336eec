// SPDX-License-Identifier: Apache-2.0
//
// exp and log reduce their argument to one octave and evaluate a minimax polynomial there. tanh and erf are odd rational
// functions on the interval outside of which their f32 value is one; no coefficient is negative where that would risk a
// pole. Coefficients were fitted by Lawson's iteration on the relative error (exp 3e-9, exp2 9e-8, log 1e-8, tanh 4e-9, erf 2e-8).

#include "backends/cpu/jit/vector_math.h"

#include <iterator>
#include <limits>

namespace hone::cpu {

void VectorMath::maximum(const Vec& x, float bound, const Vec& s0) {
  e_.load_constant(s0, bound);
  e_.vmaxps(x, s0, x);  // the second operand wins when either is NaN
}

void VectorMath::minimum(const Vec& x, float bound, const Vec& s0) {
  e_.load_constant(s0, bound);
  e_.vminps(x, s0, x);
}

void VectorMath::negate(const Vec& x) { e_.vxorps(x, x, e_.constant_bits(0x80000000u)); }

void VectorMath::polynomial(const Vec& y, const Vec& x, std::initializer_list<float> coefficients) {
  auto c = std::rbegin(coefficients);
  e_.load_constant(y, *c);
  for (++c; c != std::rend(coefficients); ++c) e_.vfmadd213ps(y, x, e_.constant(*c));
}

void VectorMath::scale_by_power_of_two(const Vec& x, const Vec& mantissa, const Vec& exponent) {
  if (e_.avx512()) {
    e_.vscalefps(x, mantissa, exponent);
    return;
  }
  // Two factors of half the exponent each, so that the result overflows to infinity and underflows gradually.
  e_.vcvtps2dq(exponent, exponent);
  e_.vpsrad(x, exponent, 1);
  e_.vpsubd(exponent, exponent, x);
  for (const Vec& half : {x, exponent}) {
    e_.vpaddd(half, half, e_.constant_bits(127));
    e_.vpslld(half, half, 23);
    e_.vmulps(mantissa, mantissa, half);
  }
  e_.vmovaps(x, mantissa);
}

void VectorMath::exp(const Vec& x, const Vec& s0, const Vec& s1) {
  minimum(x, 89.0f, s0);    // exp is infinite above 88.8
  maximum(x, -104.0f, s0);  // and zero below -103.98
  e_.load_constant(s0, 1.44269504f);
  e_.vmulps(s0, s0, x);
  e_.round_to_nearest(s0);
  e_.vfnmadd231ps(x, s0, e_.constant(0.693145751953125f));  // ln 2 in two parts; the first has few bits: exact product
  e_.vfnmadd231ps(x, s0, e_.constant(1.42860682e-6f));
  polynomial(s1, x, {1.0f, 1.0f, 0.49999994f, 0.16666515f, 0.041668456f, 0.0083694188f, 0.0013813145f});
  scale_by_power_of_two(x, s1, s0);
}

void VectorMath::exp2(const Vec& x, const Vec& s0, const Vec& s1) {
  static constexpr std::initializer_list<float> kMantissa = {1.0f,           0.693151295f,  0.240164444f, 0.0557999127f,
                                                             0.00901702978f, 0.00186713028f};  // on [0, 1]
  if (e_.avx512()) {
    e_.vreduceps(s0, x, 1);  // x - floor(x), zero for infinities
    polynomial(s1, s0, kMantissa);
    e_.vscalefps(x, s1, x);  // takes the floor itself
    return;
  }
  minimum(x, 129.0f, s0);
  maximum(x, -150.0f, s0);
  e_.vroundps(s0, x, 1);
  e_.vsubps(x, x, s0);
  polynomial(s1, x, kMantissa);
  scale_by_power_of_two(x, s1, s0);
}

void VectorMath::log(const Vec& x, const Vec& s0, const Vec& s1, const Vec& s2) {
  // x = m 2^e with m in [3/4, 3/2), t = m - 1.
  if (e_.avx512()) {
    e_.vgetmantps(s1, x, 0b1011);  // interval [3/4, 3/2), NaN for negative x
    e_.vgetexpps(s0, x);
    e_.vgetexpps(x, s1);
    e_.vsubps(s0, s0, x);
  } else {
    // Subnormals are scaled up first; s2 keeps the scaled x for the special cases at the end.
    e_.vcmpltps(s0, x, e_.constant(std::numeric_limits<float>::min()));
    e_.vmulps(s1, x, e_.constant(8388608.0f));
    e_.vblendvps(s2, x, s1, s0);
    e_.vandps(s0, s0, e_.constant(-23.0f));
    e_.vpsubd(s1, s2, e_.constant_bits(0x3f400000u));
    e_.vpsrad(s1, s1, 23);
    e_.vcvtdq2ps(x, s1);
    e_.vaddps(s0, s0, x);
    e_.vpslld(s1, s1, 23);
    e_.vpsubd(s1, s2, s1);
  }
  e_.vsubps(s1, s1, e_.constant(1.0f));
  polynomial(x, s1,
             {0.33333340f, -0.25000167f, 0.19999605f, -0.16655280f, 0.14276168f, -0.12727892f, 0.11701559f,
              -0.091175705f, 0.037679169f});
  e_.vmulps(x, x, s1);
  e_.vsubps(x, x, e_.constant(0.5f));
  e_.vmulps(x, x, s1);
  e_.vfmadd213ps(x, s1, s1);  // t + t^2 (t q(t) - 1/2)
  e_.vfmadd231ps(x, s0, e_.constant(0.69314718f));
  if (!e_.avx512()) {
    e_.zero(s1);
    e_.vcmpeqps(s0, s2, s1);
    e_.load_constant(s1, -std::numeric_limits<float>::infinity());
    e_.vblendvps(x, x, s1, s0);
    e_.zero(s1);
    e_.vcmpnleps(s0, s1, s2);  // not 0 <= x: negative or NaN
    e_.load_constant(s1, std::numeric_limits<float>::quiet_NaN());
    e_.vblendvps(x, x, s1, s0);
    e_.load_constant(s1, std::numeric_limits<float>::infinity());
    e_.vcmpeqps(s0, s2, s1);
    e_.vblendvps(x, x, s1, s0);
  }
}

void VectorMath::tanh(const Vec& x, const Vec& s0, const Vec& s1) {
  minimum(x, 9.0f, s0);
  maximum(x, -9.0f, s0);
  e_.vmulps(s0, x, x);
  polynomial(s1, s0, {1.0f, 0.13713840f, 0.0039107753f, 2.8858706e-5f, 3.2602310e-8f, -1.3662932e-11f});
  e_.vmulps(x, x, s1);
  polynomial(s1, s0, {1.0f, 0.47047173f, 0.027401357f, 0.00040133044f, 1.3464825e-6f});
  e_.vdivps(x, x, s1);
}

void VectorMath::erf(const Vec& x, const Vec& s0, const Vec& s1) {
  minimum(x, 3.92f, s0);
  maximum(x, -3.92f, s0);
  e_.vmulps(s0, x, x);
  polynomial(s1, s0, {1.12837915f, 0.19040500f, 0.052748536f, 0.0037655551f, 0.00028488153f, 2.0501017e-6f});
  e_.vmulps(x, x, s1);
  polynomial(s1, s0, {1.0f, 0.50207478f, 0.11410851f, 0.014969094f, 0.0011625208f, 3.8091801e-5f});
  e_.vdivps(x, x, s1);
}

void VectorMath::sigmoid(const Vec& x, const Vec& s0, const Vec& s1) {
  negate(x);
  exp(x, s0, s1);
  e_.load_constant(s0, 1.0f);
  e_.vaddps(x, x, s0);
  e_.vdivps(x, s0, x);
}

int VectorMath::scratch_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::none: return 0;
    case ActivationKind::relu:
    case ActivationKind::clip:
    case ActivationKind::hard_sigmoid: return 1;
    case ActivationKind::leaky_relu:
    case ActivationKind::hard_swish:
    case ActivationKind::sigmoid:
    case ActivationKind::tanh: return 2;
    case ActivationKind::silu:
    case ActivationKind::gelu:
    case ActivationKind::gelu_tanh: return 3;
  }
  return 3;
}

void VectorMath::activation(const Activation& activation, const Vec& x, const Vec& s0, const Vec& s1, const Vec& s2) {
  switch (activation.kind) {
    case ActivationKind::none: return;
    case ActivationKind::relu:
      e_.zero(s0);
      e_.vmaxps(x, s0, x);
      return;
    case ActivationKind::clip:
      maximum(x, activation.alpha, s0);
      minimum(x, activation.beta, s0);
      return;
    case ActivationKind::leaky_relu:  // max(x, 0) + alpha min(x, 0)
      e_.zero(s0);
      e_.vminps(s1, s0, x);
      e_.vmaxps(x, s0, x);
      e_.vfmadd231ps(x, s1, e_.constant(activation.alpha));
      return;
    case ActivationKind::hard_sigmoid:
      e_.load_constant(s0, activation.alpha);
      e_.vfmadd213ps(x, s0, e_.constant(activation.beta));
      maximum(x, 0.0f, s0);
      minimum(x, 1.0f, s0);
      return;
    case ActivationKind::hard_swish:
      e_.load_constant(s1, 1.0f / 6.0f);
      e_.vfmadd213ps(s1, x, e_.constant(0.5f));
      maximum(s1, 0.0f, s0);
      minimum(s1, 1.0f, s0);
      e_.vmulps(x, x, s1);
      return;
    case ActivationKind::sigmoid: return sigmoid(x, s0, s1);
    case ActivationKind::tanh: return tanh(x, s0, s1);
    case ActivationKind::silu:
      e_.vmovaps(s2, x);
      sigmoid(x, s0, s1);
      e_.vmulps(x, x, s2);
      return;
    case ActivationKind::gelu:
      e_.vmulps(s2, x, e_.constant(0.5f));
      e_.vmulps(x, x, e_.constant(0.70710678f));
      erf(x, s0, s1);
      e_.vfmadd213ps(x, s2, s2);
      return;
    case ActivationKind::gelu_tanh:
      e_.vmulps(s2, x, e_.constant(0.5f));
      e_.vmulps(s0, x, x);
      e_.load_constant(s1, 0.044715f * 0.79788456f);
      e_.vfmadd213ps(s0, s1, e_.constant(0.79788456f));
      e_.vmulps(x, x, s0);
      tanh(x, s0, s1);
      e_.vfmadd213ps(x, s2, s2);
      return;
  }
}

}  // namespace hone::cpu
