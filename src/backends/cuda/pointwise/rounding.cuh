// SPDX-License-Identifier: Apache-2.0

// x / scale to the nearest step, for results of at most `limit`: a division costs ten times the product with the reciprocal, which
// goes elsewhere only beside the middle of two steps.
static inline float nearest_step(float x, float scale, float reciprocal, float limit) {
  const float product = x * reciprocal, step = rintf(product);
  return fabsf(product - step) < 0.5f - limit * 0x1p-20f ? step : rintf(x / scale);
}

// How many steps, `low` to `high`, of which a float has `per_one`, of what was summed in some order before: that decides what lies between
// two steps more than a division would. Limits are whole numbers below 2^22, so that an addition rounds.
static inline float steps(float x, float per_one, float low, float high, float of_nan) {
  const float bounded = fminf(fmaxf(x * per_one, low), high), step = (bounded + 12582912.0f) - 12582912.0f;
  return x != x ? of_nan : step;
}
