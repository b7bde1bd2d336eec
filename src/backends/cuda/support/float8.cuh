// SPDX-License-Identifier: Apache-2.0
//
// E4M3, floats of 8 bits, for sources that name it: behind the prelude. Rounded to the nearest number, of two the even one; what is beyond
// the largest becomes that.

struct e4m3 { unsigned char bits; };

static inline float as_float(e4m3 value) {
  unsigned pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)value.bits));
  return as_float(f16{(unsigned short)pair});
}
// The codes of two floats, the first one in the lower byte.
static inline unsigned short pair_of_e4m3(float low, float high) {
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}
static inline unsigned four_of_e4m3(float a, float b, float c, float d) {
  return pair_of_e4m3(a, b) | (unsigned)pair_of_e4m3(c, d) << 16;
}
template <typename To> struct Convert<To, e4m3> { static To of(e4m3 value) { return (To)as_float(value); } };
template <typename From> struct Convert<e4m3, From> { static e4m3 of(From value) { return {(unsigned char)pair_of_e4m3((float)value, 0)}; } };
template <> struct Convert<e4m3, e4m3> { static e4m3 of(e4m3 value) { return value; } };
