// SPDX-License-Identifier: Apache-2.0
//
// What a kernel does to a finished sum. Before this stand ACTIVATION, the number of regions/epilogue.h, ALPHA, BETA and DIGITS: what the
// results keep, 0 codes of 8 bits, 1 elements of 16, 2 more. But for the last, a quotient and a power take two instructions instead of
// twenty, and Gelu is x times the logistic function of a polynomial that was fitted to it: 2.6e-5 off at most. For codes the logistic
// function is a hyperbolic tangent in one instruction, 2.5e-4 off at most.

#if DIGITS == 2
static inline float logistic(float x) { return 1.0f / (1.0f + expf(-x)); }
#elif DIGITS == 1
static inline float logistic(float x) { return fast_reciprocal(1.0f + fast_exp2(-1.4426950f * x)); }
#else
static inline float logistic(float x) { return 0.5f + 0.5f * fast_tanh(0.5f * x); }
#endif

static inline float activate(float x) {
  switch (ACTIVATION) {
    case 1: return fmaxf(x, 0.0f);
    case 2: return fminf(fmaxf(x, ALPHA), BETA);
    case 3: return x < 0 ? ALPHA * x : x;
    case 4: return logistic(x);
    case 5: return DIGITS == 2 ? x / (1.0f + expf(-x)) : x * logistic(x);
    case 6: return fminf(fmaxf(ALPHA * x + BETA, 0.0f), 1.0f);
    case 7: return x * fminf(fmaxf(x / 6.0f + 0.5f, 0.0f), 1.0f);
    case 8: return tanhf(x);
    case 9: {
      if (DIGITS == 2) return 0.5f * x * (1.0f + erff(x * 0.70710678f));
      const float square = fminf(x * x, 36.0f);
      return x * logistic(x * (1.5950158f + square * (0.074011294f - 7.030338e-4f * square)));
    }
    case 10:
      if (DIGITS == 2) return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
      return x * logistic(x * (1.5957691f + 0.071354816f * x * x));
    default: return x;
  }
}
