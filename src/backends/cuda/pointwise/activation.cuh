// SPDX-License-Identifier: Apache-2.0
//
// What a kernel does to a finished sum. Before this stand ACTIVATION, the number of regions/epilogue.h, ALPHA, BETA and FINE: whether
// results keep more than 16 bits. Where they do not, a quotient and a power take two instructions instead of twenty, and Gelu is x times
// the logistic function of a polynomial that was fitted to it: 2.6e-5 off at most.

static inline float activate(float x) {
  switch (ACTIVATION) {
    case 1: return fmaxf(x, 0.0f);
    case 2: return fminf(fmaxf(x, ALPHA), BETA);
    case 3: return x < 0 ? ALPHA * x : x;
    case 4: return FINE ? 1.0f / (1.0f + expf(-x)) : __fdividef(1.0f, 1.0f + __expf(-x));
    case 5: return FINE ? x / (1.0f + expf(-x)) : __fdividef(x, 1.0f + __expf(-x));
    case 6: return fminf(fmaxf(ALPHA * x + BETA, 0.0f), 1.0f);
    case 7: return x * fminf(fmaxf(x / 6.0f + 0.5f, 0.0f), 1.0f);
    case 8: return tanhf(x);
    case 9: {
      if (FINE) return 0.5f * x * (1.0f + erff(x * 0.70710678f));
      const float square = fminf(x * x, 36.0f);
      return __fdividef(x, 1.0f + __expf(-x * (1.5950158f + square * (0.074011294f - 7.030338e-4f * square))));
    }
    case 10:
      if (FINE) return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
      return __fdividef(x, 1.0f + __expf(-x * (1.5957691f + 0.071354816f * x * x)));
    default: return x;
  }
}
