// SPDX-License-Identifier: Apache-2.0
//
// What the families of matmuls and convolutions share: weights as rows of filters, and the epilogue as switches of the code.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/tactic_table.h"
#include "regions/conv_region.h"
#include "regions/matmul_region.h"

namespace hone::cuda {

/// What an epilogue reads: constant 1, and an input.
struct EpilogueReads {
  Reads bias, residual;
  static void fields(auto& self, auto& visit) {
    visit("bias", self.bias, "float");
    visit("residual", self.residual, "T");
  }
};
/// Throws Error where the plan's bias is not one of so many filters, or its residual is not like the first result.
EpilogueReads epilogue_reads(const EpilogueCode& code, const LoadContext& context, int64_t filters);

/// Weights as [filter][tap][channel of the group], scaled, in their own type.
Tensor filter_rows(const ConvRegion& region);
Tensor filter_rows(const LinearRegion& region);
/// The bias that an epilogue reads, where there is one.
void append_bias(const std::vector<float>& bias, std::vector<Tensor>& constants);
/// Step number `place` as an expression of `sum`, `residual` and `late_bias`; and the functions that formulas among steps are.
std::string step_text(const EpilogueStep& step, size_t place);
std::string formulas_text(const std::vector<EpilogueStep>& steps);
/// ACTIVATION, ALPHA and BETA, as activation.cuh expects them.
std::string activation_text(const Activation& activation);
/// HAS_BIAS, LATE_BIAS, HAS_RESIDUAL, the activation, and finish(sum, residual, late_bias), which does all that follows the bias;
/// a late one it adds itself.
std::string epilogue_text(const RegionMatch& match, const EpilogueCode& epilogue);

}  // namespace hone::cuda
