// SPDX-License-Identifier: Apache-2.0
//
// A file of a run, whatever it holds: inputs, results of runners, or a comparison's numbers.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/accuracy_file.h"

namespace hone {

struct SavedData {
  enum class Kind { inputs, results, accuracy } kind = Kind::inputs;
  std::vector<TensorList> inputs;  // by iteration
  std::vector<RunResult> results;
  std::vector<KeptComparison> accuracy;
};

/// JSON as Polygraphy writes it or a folder of such files, .npz, .npy, .safetensors. Throws StatusError.
SavedData read_saved(const std::string& path);

}  // namespace hone
