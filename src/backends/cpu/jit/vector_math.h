// SPDX-License-Identifier: Apache-2.0
//
// Emitters of elementary functions on a whole vector, in place, for AVX2 and AVX-512 alike. Each names its scratch registers;
// constants are memory operands, so nothing else is used. Accuracy: within 5 ulp of the true value (exp 2, exp2 3, log 3;
// vector_math_test.cpp measures it), NaN stays NaN, infinities and zeros give what <cmath> gives.
#pragma once

#include "backends/cpu/jit/emitter.h"
#include "regions/epilogue.h"

namespace hone::cpu {

class VectorMath {
 public:
  using Vec = Emitter::Vec;
  explicit VectorMath(Emitter& emitter) : e_(emitter) {}

  void exp(const Vec& x, const Vec& s0, const Vec& s1);
  void exp2(const Vec& x, const Vec& s0, const Vec& s1);
  void log(const Vec& x, const Vec& s0, const Vec& s1, const Vec& s2);
  void tanh(const Vec& x, const Vec& s0, const Vec& s1);
  void erf(const Vec& x, const Vec& s0, const Vec& s1);
  void sigmoid(const Vec& x, const Vec& s0, const Vec& s1);

  /// Any activation; s0..s2 are scratch. See scratch_of() for how many are really used.
  void activation(const Activation& activation, const Vec& x, const Vec& s0, const Vec& s1, const Vec& s2);
  /// Scratch registers that activation() uses for this kind: 0 to 3.
  static int scratch_of(ActivationKind kind);

  // The smaller steps, useful on their own. They keep NaN.
  void maximum(const Vec& x, float bound, const Vec& s0);
  void minimum(const Vec& x, float bound, const Vec& s0);
  void negate(const Vec& x);

 private:
  /// y = c[0] + c[1] x + … by Horner's rule; y must differ from x.
  void polynomial(const Vec& y, const Vec& x, std::initializer_list<float> coefficients);
  void scale_by_power_of_two(const Vec& x, const Vec& mantissa, const Vec& exponent);

  Emitter& e_;
};

}  // namespace hone::cpu
