// SPDX-License-Identifier: Apache-2.0
//
// FakeQuantize: to multiples of `scale`, `low` to `high` of them.
static inline float rounded(float x, float scale, float low, float high, float of_nan) {
  return scale * (x != x ? of_nan : fmaxf(low, fminf(high, rintf(x / scale))));
}
