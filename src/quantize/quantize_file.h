// SPDX-License-Identifier: Apache-2.0
//
// Quantisation written into a model's file: a standard model with QuantizeLinear and DequantizeLinear, which other programs run, too.
#pragma once

#include "onnx/model_file.h"
#include "quantize/input_moments.h"
#include "quantize/placement.h"
#include "quantize/scale.h"

namespace hone {

struct FileQuantization {
  size_t pairs = 0, weights = 0;         // that were written
  std::vector<std::string> not_in_file;  // tensors that the file's graph does not have: they are inside of functions
};

/// Brings the model to operator set 13 where it is older. `graph` is the model as it was imported, and `placement` of it; `scales` has
/// one for each of its tensors. Initialisers in other files come into this one.
FileQuantization quantize_file(onnx::ModelFile& file, const Graph& graph, const Placement& placement,
                               const TensorScales& scales, Codes codes);

/// Of activations, by their names: the moments of their last axis.
using Moments = std::map<std::string, InputMoments, std::less<>>;

struct WeightRules {
  int64_t block = 128;
  Codes codes = Codes::symmetric;
  bool clips = true, feeds_back = false;  // where there are moments; those that feed back have products
};

/// Weights of a place_weights() in 4 bits by blocks; brings the model to operator set 21. Weights whose activation has moments are
/// fitted to them: clipped, and errors fed back, where that lessens the error of the products.
FileQuantization quantize_weights_in_file(onnx::ModelFile& file, const Graph& graph, const Placement& placement,
                                          const WeightRules& rules, const Moments& moments);

}  // namespace hone
