// SPDX-License-Identifier: Apache-2.0

#include "regions/epilogue.h"

#include <algorithm>
#include <cmath>

namespace hone {

double activate(const Activation& a, double x) {
  switch (a.kind) {
    case ActivationKind::none: return x;
    case ActivationKind::relu: return std::max(x, 0.0);
    case ActivationKind::clip: return std::min(std::max(x, double(a.alpha)), double(a.beta));
    case ActivationKind::leaky_relu: return x < 0 ? a.alpha * x : x;
    case ActivationKind::sigmoid: return 1 / (1 + std::exp(-x));
    case ActivationKind::silu: return x / (1 + std::exp(-x));
    case ActivationKind::hard_sigmoid: return std::clamp(a.alpha * x + a.beta, 0.0, 1.0);
    case ActivationKind::hard_swish: return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
    case ActivationKind::tanh: return std::tanh(x);
    case ActivationKind::gelu: return 0.5 * x * (1 + std::erf(x * 0.70710678118654752));
    case ActivationKind::gelu_tanh: return 0.5 * x * (1 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
  }
  return x;
}

}  // namespace hone
