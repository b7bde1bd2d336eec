// SPDX-License-Identifier: Apache-2.0
//
// What generated formulas call. Before this stands S, the type of their scalars.

static inline S modulo_floor(S a, S b) {
  const bool integral = (S)0.5 == 0;
  if (integral && b == 0) return 0;
  const S rest = integral ? a - a / b * b : (S)fmod((double)a, (double)b);
  if (rest != 0) return (rest < 0) != (b < 0) ? rest + b : rest;
  return integral ? rest : (S)copysign(0.0, (double)b);  // a zero takes the divisor's sign, as in numpy
}
// A NaN in either operand is the result, as in numpy.
static inline S lesser(S a, S b) { return a != a || a < b ? a : b; }
static inline S greater(S a, S b) { return a != a || a > b ? a : b; }
