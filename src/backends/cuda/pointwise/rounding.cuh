// SPDX-License-Identifier: Apache-2.0

// x / scale to the nearest step, for results of at most `limit`: a division costs ten times the product with the reciprocal, which
// goes elsewhere only beside the middle of two steps.
static inline float nearest_step(float x, float scale, float reciprocal, float limit) {
  const float product = x * reciprocal, step = rintf(product);
  return fabsf(product - step) < 0.5f - limit * 0x1p-20f ? step : rintf(x / scale);
}

// How many steps, `low` to `high`, of which a float has `per_one`, of what was summed in some order before: that decides what lies between
// two steps more than a division would. Limits are whole numbers below 2^22, so that an addition rounds.
static inline float steps(float x, float per_one, float low, float high) {
  return (fminf(fmaxf(x * per_one, low), high) + 12582912.0f) - 12582912.0f;
}
// The same where NaN is not the lowest.
static inline float steps(float x, float per_one, float low, float high, float of_nan) {
  const float whole = steps(x, per_one, low, high);
  return x != x ? of_nan : whole;
}

// Codes of 8 bits, whole numbers as floats, in the low byte of their sum with 3 2^22; and back.
static inline unsigned code_of(float whole) { return __float_as_uint(whole + 12582912.0f); }
static inline unsigned codes_of(float a, float b, float c, float d) {
  return __byte_perm(__byte_perm(code_of(a), code_of(b), 0x0040), __byte_perm(code_of(c), code_of(d), 0x0040), 0x5410);
}
// Code `place` of four, shifted by 128, as a float of 2^23 and more.
static inline float float_of_code(unsigned shifted, int place) {
  return __uint_as_float(__byte_perm(shifted, 0x4b000000u, 0x7650 + place));
}
