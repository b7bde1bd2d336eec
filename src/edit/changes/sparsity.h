// SPDX-License-Identifier: Apache-2.0
//
// Weights of 2:4 structure (of every four consecutive elements along the summed axis two at most are not zero), and weights that are
// left out of a file.
#pragma once

#include "edit/values.h"

namespace hone::edit {

struct PrunableWeight {
  std::string name;
  size_t axis = 0;      // the summed one
  bool fits = false;    // has the structure
  double zeros = 0;     // the share of elements that are zero
  std::string skipped;  // why it can have none
};

/// Weights of Conv, MatMul and Gemm in floating point.
std::vector<PrunableWeight> prunable_weights(const Model& model);
/// Keeps the two largest of every four elements. Those that were changed.
std::vector<std::string> prune(Model& model, const std::vector<std::string>& except);

/// Takes the elements out of weights of Conv, ConvTranspose, Gemm and MatMul (through QuantizeLinear and Transpose, too). Their number.
size_t strip_weights(Model& model, const std::vector<std::string>& except);
/// Puts placeholders in their place: small random values, of 2:4 structure where the stripped ones had it. Their number.
size_t reconstruct_weights(Model& model);

}  // namespace hone::edit
