// SPDX-License-Identifier: Apache-2.0

// x / scale to the nearest step, for results of at most `limit`: a division costs ten times the product with the reciprocal, which
// goes elsewhere only beside the middle of two steps.
static inline float nearest_step(float x, float scale, float reciprocal, float limit) {
  const float product = x * reciprocal, step = rintf(product);
  return fabsf(product - step) < 0.5f - limit * 0x1p-20f ? step : rintf(x / scale);
}

// FakeQuantize: to multiples of `scale`, `low` to `high` of them.
static inline float rounded(float x, float scale, float low, float high, float of_nan) {
  return scale * (x != x ? of_nan : fmaxf(low, fminf(high, nearest_step(x, scale, 1.0f / scale, fmaxf(-low, high)))));
}
