// SPDX-License-Identifier: Apache-2.0
//
// Which layers of a network cost accuracy when they are quantised, and how few of them have to stay in floating point.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/common/keep_list.h"
#include "tools/model/handles.h"
#include "tools/model/tensor_errors.h"

namespace hone {

/// The network with all that can be quantised, but for the nodes of these names.
using Quantise = std::function<hone_model(const NodeNames& kept)>;

struct NodeError {
  std::string node;
  double error = 0;  // of the outputs, relatively, with this node alone quantised
};

class Sensitivity {
 public:
  /// `nodes` are those that are quantised. The first few batches of the data are used.
  Sensitivity(ExactNetwork& exact, Quantise quantise, std::vector<std::string> nodes);

  /// The worst node first. As many builds as there are nodes.
  const std::vector<NodeError>& ranked() const { return ranked_; }
  /// Of the worst nodes so few that the outputs' error is within the budget when they stay in floating point.
  NodeNames kept_for(double budget) const;
  /// The largest relative error of an output.
  double error_without(const NodeNames& kept) const;

 private:
  NodeNames worst(size_t count) const;

  ExactNetwork& exact_;
  Quantise quantise_;
  std::vector<NodeError> ranked_;
};

}  // namespace hone
