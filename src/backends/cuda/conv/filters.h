// SPDX-License-Identifier: Apache-2.0
//
// What the families of matmuls and convolutions share: weights as rows of filters, and the epilogue as switches of the code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/support/rounding.h"
#include "backends/cuda/tactic_table.h"
#include "regions/conv_region.h"
#include "regions/matmul_region.h"

namespace hone::cuda {

/// The numbers of codes and roundings. A launch carries them, so that layers that differ in them alone share machine code.
struct StepNumbers {
  static constexpr std::string_view kName = "StepNumbers";
  static constexpr size_t kMost = 24;
  float at[kMost] = {};
  static void fields(auto& self, auto& visit) { visit("at", self.at); }
};
/// The same as a plan keeps them, in the order in which the source text names them.
std::vector<double> step_numbers(const RegionMatch& match);

/// What an epilogue reads: constant 1, an input, and numbers.
struct EpilogueReads {
  Reads bias, residual;
  StepNumbers numbers;
  static void fields(auto& self, auto& visit) {
    visit("bias", self.bias, "float");
    visit("residual", self.residual, "Added");
    visit("numbers", self.numbers);
  }
};
/// Throws Error where the plan's bias is not one of so many filters, or its residual is not of the first result's size.
EpilogueReads epilogue_reads(const EpilogueCode& code, const LoadContext& context, int64_t filters,
                             const std::vector<double>& numbers = {});

/// Weights as [filter][tap][channel of the group], scaled, in their own type.
Tensor filter_rows(const ConvRegion& region);
Tensor filter_rows(const LinearRegion& region);
/// The bias that an epilogue reads, where there is one.
void append_bias(const std::vector<float>& bias, std::vector<Tensor>& constants);
/// KERNEL, STRIDE, DILATION and PAD of each of two spatial axes, H and W.
std::string window_text(const WindowAttrs& window);
/// Step number `place` as an expression of `sum`, `residual` and `late_bias`, its numbers written by `number`; and the functions that
/// formulas among steps are.
std::string step_text(const EpilogueStep& step, size_t place, const NumberText& number);
std::string formulas_text(const std::vector<EpilogueStep>& steps);
/// What results keep of an activation: 8-bit codes, 16 bits, or more.
enum class Digits : uint8_t { of_codes, of_halves, of_floats };
/// ACTIVATION, ALPHA, BETA and DIGITS, as activation.cuh expects them.
std::string activation_text(const Activation& activation, Digits digits);
/// Operand, the element type of what is convolved, and operand(element, numbers), the float that one stands for.
std::string operand_text(const RegionMatch& match);
/// Result and Added (elements of the result and of the residual), ENCODES (whether results are codes), HAS_BIAS, LATE_BIAS, HAS_RESIDUAL, the activation,
/// added(element, numbers), the float that a residual's stands for, and finish(sum, residual, numbers, late_bias), which does all that
/// follows the bias; a late one it adds itself.
std::string epilogue_text(const RegionMatch& match, const EpilogueCode& epilogue);
/// Whether sums, biases and what is added may be held in the result's steps: it is all the codes of 8 bits, and nothing but a sum stands
/// before them. What one is multiplied by then.
std::optional<float> codes_per_one(const RegionMatch& match);
/// SATURATES: whether results are all the codes of 8 bits. Then finish_unrounded(), like finish(), gives the steps before they are
/// rounded to whole ones, ENCODED_ZERO is what is added to those and ENCODED_LOW the lowest that they are held to, which finish_unrounded()
/// does itself unless IN_STEPS: all it is given counts the result's steps, and no NaN is among it.
std::string unrounded_text(const RegionMatch& match, bool in_steps);

}  // namespace hone::cuda
