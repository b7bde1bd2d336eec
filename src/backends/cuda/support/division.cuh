// SPDX-License-Identifier: Apache-2.0
//
// Division of numbers below 2^31 by a size that the host knows (support/divisor.h). Behind the parameters, which declare Divisor.

static inline unsigned quotient(unsigned number, const Divisor& by) {
  return by.size == 1 ? number : (unsigned)((unsigned long long)number * (unsigned)by.inverse >> 32) >> by.shift;
}
// The remainder; `number` becomes the quotient.
static inline int split_off(unsigned& number, const Divisor& by) {
  const unsigned whole = quotient(number, by), rest = number - whole * (unsigned)by.size;
  number = whole;
  return (int)rest;
}
