// SPDX-License-Identifier: Apache-2.0
//
// Whether an engine gives the same results however programs run it: again and again, on other values, on memory that held
// something else, with other bindings, layer by layer, in two contexts at once, after other shapes.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine.h"

namespace hone {

/// What a network is given, at one set of shapes.
struct NetworkInputs {
  std::map<std::string, Dims> shapes;  // of inputs with dynamic sizes
  std::vector<std::map<std::string, Buffer>>
      sets;  // values by input, as it is bound, in host memory: two sets at least
};

/// Inferences that were run in one way, each held against the first one on the same inputs.
struct Situation {
  std::string name;
  int inferences = 0, different = 0;  // not the same bytes
  double largest = 0;                 // norm of a difference over the norm of what the first inference gave
  std::string tensor;                 // where that is
};

struct Consistency {
  std::vector<Situation> situations;
  std::vector<std::map<std::string, Tensor>> first;  // outputs of the first inference on each set, linear
  bool good() const;
};

/// `inputs[0]` runs `inferences` times in each of the quick ways and a tenth as often in the others; further inputs have other
/// shapes. Outputs that hold objects are not compared. Throws Error for inputs that cannot be bound, and whatever a run throws.
Consistency check_consistency(const std::shared_ptr<const Engine>& engine, int profile,
                              std::span<const NetworkInputs> inputs, int inferences);

}  // namespace hone
