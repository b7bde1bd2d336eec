// SPDX-License-Identifier: Apache-2.0
//
// What is done to a network before it is quantised, or to make good what that costs: other values for its constants, and biases where
// a node has none.
#pragma once

#include <map>
#include <string>

#include "ir/graph.h"
#include "onnx/model_file.h"

namespace hone {

struct ModelEdits {
  std::map<std::string, Tensor, std::less<>> constants;  // by name
  std::map<std::string, Tensor, std::less<>> biases;     // by the result of a convolution or Gemm without one

  void add(const ModelEdits& later);
};

/// The constants alone.
void apply(const ModelEdits& edits, Graph& graph);
/// Constants that nodes make become initialisers. Throws Error for constants that the file's graph does not have: half of the edits would
/// change what the model computes.
void apply(const ModelEdits& edits, onnx::ModelFile& file);

}  // namespace hone
