// SPDX-License-Identifier: Apache-2.0
//
// select(): the pure choice of one option per region so that kernels plus reformats cost least. No graph, no clock: the
// same input gives the same answer.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "tensor/tensor.h"

namespace hone {

/// One way to run a region: the layouts it needs and gives, and its time.
struct SelectOption {
  std::vector<Layout> in, out;
  double ms = 0;
  int tactic = 0;  // the caller's index, also the order of preference among equals
};

struct SelectRegion {
  std::vector<int> inputs, outputs;   // value ids; an input may repeat
  std::vector<SelectOption> options;  // at least one
};

struct SelectProblem {
  std::vector<SelectRegion> regions;  // in execution order
  std::map<int, Layout> given;        // layouts of network inputs
  std::map<int, Layout> wanted;       // layouts of network outputs
  /// Milliseconds to bring a value from one layout to another; absent pairs are impossible.
  std::map<std::tuple<int, Layout, Layout>, double> reformat_ms;
};

struct Selected {
  std::vector<int> option;  // by region
  double ms = 0;            // kernels and reformats together
};

/// Coordinate descent from one start per layout; ties within max(2 %, 0.1 us) go to the earlier option.
Selected select(const SelectProblem& problem);

}  // namespace hone
