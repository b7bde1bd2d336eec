// SPDX-License-Identifier: Apache-2.0
//
// What a kernel does to a finished sum. Before this stand ACTIVATION, the number of regions/epilogue.h, ALPHA and BETA.

static inline float activate(float x) {
  switch (ACTIVATION) {
    case 1: return fmaxf(x, 0.0f);
    case 2: return fminf(fmaxf(x, ALPHA), BETA);
    case 3: return x < 0 ? ALPHA * x : x;
    case 4: return 1.0f / (1.0f + expf(-x));
    case 5: return x / (1.0f + expf(-x));
    case 6: return fminf(fmaxf(ALPHA * x + BETA, 0.0f), 1.0f);
    case 7: return x * fminf(fmaxf(x / 6.0f + 0.5f, 0.0f), 1.0f);
    case 8: return tanhf(x);
    case 9: return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case 10: return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    default: return x;
  }
}
