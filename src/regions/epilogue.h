// SPDX-License-Identifier: Apache-2.0
//
// What a kernel does to a finished sum before it stores it: + bias, + residual, activation. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace hone {

struct Node;
struct Value;

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

inline constexpr std::array<std::string_view, 11> kActivationNames = {
    "none", "relu", "clip", "leaky_relu", "sigmoid", "silu", "hard_sigmoid", "hard_swish", "tanh", "gelu", "gelu_tanh"};
constexpr const auto& field_names(ActivationKind) { return kActivationNames; }

struct Activation {
  ActivationKind kind = ActivationKind::none;
  float alpha = 0, beta = 0;
  static void fields(auto& self, auto& visit) {
    visit("activation", self.kind);
    visit("alpha", self.alpha);
    visit("beta", self.beta);
  }
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

/// How a tensor of floats is kept in bytes: q = saturate(round(x / scale) + zero), to even, and x = (q - zero) * scale.
struct Quantization {
  DType dtype = DType::f32;  // u8 or i8; f32: it is not
  float scale = 1;
  int64_t zero = 0;
  /// Fields are named after the tensor.
  static void fields(auto& self, auto& visit, const std::string& tensor) {
    visit(tensor + "_type", self.dtype);
    visit(tensor + "_scale", self.scale);
    visit(tensor + "_zero", self.zero, -128, 255);
  }
  explicit operator bool() const { return dtype != DType::f32; }
  bool operator==(const Quantization&) const = default;
};

/// Floats rounded to multiples of a scale, `low` to `high` of them; NaN becomes `of_nan` of them. A scale of 0: they are not.
struct Rounding {
  float scale = 0, low = 0, high = 0, of_nan = 0;
  bool operator==(const Rounding&) const = default;
};

/// What a code of eight bits, a whole number (i8) or E4M3, stands for: (code - zero) * scale. A scale of 0: there are no codes.
struct Decoding {
  float scale = 0, zero = 0;
  DType codes = DType::i8;
  explicit operator bool() const { return scale != 0; }
  bool operator==(const Decoding&) const = default;
};

/// One thing that is done to a sum (`bias`: of a sum that is rounded first; others are added at once); those of a region in order say the same as its Epilogue where none of them rounds.
struct EpilogueStep {
  enum class Kind { activation, residual, rounding, bias, formula, encoding, scaling } kind = Kind::residual;
  Activation activation = {};
  Rounding rounding =
      {};  // of an encoding, too, whose codes are so many steps plus `zero`; a scaling's are counted and rounded when stored
  float zero = 0;
  std::vector<const Node*> nodes =
      {};  // of a formula: pointwise nodes that read the sum `from`, scalars and each other
  const Value* from = nullptr;
};

/// Inputs of a region that a kernel's code may name.
inline constexpr int64_t kMostOperands = 1 << 16;

/// The epilogue in a kernel's code, and where its residual comes from. The scale is not part of it: it goes into the weights, or
/// is the family's matter.
struct EpilogueCode {
  bool bias = false;
  int64_t residual = -1;  // which of the kernel's inputs is added; -1: none
  bool residual_after_activation = false;
  Activation activation = {};
  static void fields(auto& self, auto& visit) {
    visit("bias", self.bias);
    visit("residual", self.residual, -1, kMostOperands - 1);
    visit("residual_after_activation", self.residual_after_activation);
    Activation::fields(self.activation, visit);
  }
  Epilogue epilogue() const { return {1, bias, residual >= 0, residual_after_activation, activation}; }
};

/// The activation in double precision: the meaning that kernels are tested against.
double activate(const Activation& activation, double x);

}  // namespace hone
