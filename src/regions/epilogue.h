// SPDX-License-Identifier: Apache-2.0
//
// What a kernel does to a finished sum before it stores it: + bias, + residual, activation. Plain values.
#pragma once

namespace hone {

enum class ActivationKind {
  none,
  relu,
  clip,        // min(max(x, alpha), beta)
  leaky_relu,  // x < 0 ? alpha x : x
  sigmoid,
  silu,          // x sigmoid(x)
  hard_sigmoid,  // clip(alpha x + beta, 0, 1)
  hard_swish,    // x clip(x / 6 + 1/2, 0, 1)
  tanh,
  gelu,       // x (1 + erf(x / sqrt 2)) / 2
  gelu_tanh,  // x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
};

struct Activation {
  ActivationKind kind = ActivationKind::none;
  float alpha = 0, beta = 0;
  bool operator==(const Activation&) const = default;
};

struct Epilogue {
  float scale = 1;        // of the sum; not together with a bias or a blocked sum (attention's 1/sqrt d)
  bool bias = false;      // one value per output channel, packed (see pack.h)
  bool residual = false;  // same shape as the output, own pixel stride
  bool residual_after_activation = false;  // act(sum + bias) + residual instead of act(sum + bias + residual)
  Activation activation;
  bool operator==(const Epilogue&) const = default;
};

/// The activation in double precision: the meaning that kernels are tested against.
double activate(const Activation& activation, double x);

}  // namespace hone
