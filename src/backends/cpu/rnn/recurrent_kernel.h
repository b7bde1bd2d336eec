// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of recurrent layers over f32, compiled for every instruction set. Hidden units go in blocks of kUnits; the
// gates of a block lie side by side, so that a block of units is one panel of the weights and all of its gates are in
// registers together: rows times panel, then the gates of one row and block.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

inline constexpr int64_t kUnits = 16;

/// out[row][0..width) = init[row][0..width) + sum over k of x[row][k] * panel[k][0..width). Steps in floats; width is a multiple
/// of kUnits; an init_step of 0 gives all rows the same start. out may be init.
struct PanelArgs {
  const float* x;
  const float* panel;
  const float* init;
  float* out;
  int64_t rows, k, width;
  int64_t x_step, panel_step, init_step, out_step;
};

enum class GateFunction : uint8_t {
  sigmoid,
  tanh,
  relu,
  hard_sigmoid,
  leaky_relu,
  thresholded_relu,
  scaled_tanh,
  affine,
  elu,
  softsign,
  softplus
};
constexpr std::array<std::string_view, 11> field_names(GateFunction) {
  return {"sigmoid",     "tanh",   "relu", "hard_sigmoid", "leaky_relu", "thresholded_relu",
          "scaled_tanh", "affine", "elu",  "softsign",     "softplus"};
}
struct GateActivation {
  GateFunction function = GateFunction::sigmoid;
  float alpha = 1, beta = 0;
};

/// What the gates of one direction have in common.
struct GateRule {
  GateActivation activations[3];
  float clip = 0;        // bounds what goes into an activation; infinity for none
  bool coupled = false;  // LSTM: forgets what it does not take in

  static void fields(auto& self, auto& visit) {
    constexpr std::array<std::string_view, 3> kFunction{"function0", "function1", "function2"},
        kAlpha{"alpha0", "alpha1", "alpha2"}, kBeta{"beta0", "beta1", "beta2"};
    for (size_t i = 0; i < 3; ++i) {
      visit(kFunction[i], self.activations[i].function);
      visit(kAlpha[i], self.activations[i].alpha);
      visit(kBeta[i], self.activations[i].beta);
    }
    visit("clip", self.clip);
    visit("coupled", self.coupled);
  }
};

/// One row, one block. Gates in ONNX's order, kUnits each: i o f c; z r h; h. Peepholes (i o f) are null when there are none.
struct LstmArgs {
  const float* gates;
  const float *peep_i, *peep_o, *peep_f;
  float *cell, *hidden;
};
/// `candidate` is what the state adds to the new gate, without the reset when it comes late.
struct GruArgs {
  const float *input, *gates, *candidate, *state;
  float* hidden;
};
struct GruResetArgs {
  const float *gates, *state;
  float* scaled;  // reset gate * state
};

struct RecurrentKernels {
  void (*panel)(const PanelArgs&);
  void (*lstm)(const GateRule&, const LstmArgs&);
  void (*gru_early)(const GateRule&, const GruArgs&);  // the reset has gone into the candidate
  void (*gru_late)(const GateRule&, const GruArgs&);
  void (*gru_reset)(const GateRule&, const GruResetArgs&);
  void (*rnn)(const GateRule&, const float* gate, float* hidden);
};

/// The kernels for an instruction set (at most the machine's).
RecurrentKernels recurrent_kernels(Isa isa);

}  // namespace hone::cpu
