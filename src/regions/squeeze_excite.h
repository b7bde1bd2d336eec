// SPDX-License-Identifier: Apache-2.0
//
// Reads a region as squeeze and excitation (Hu et al., arXiv:1709.01507): the mean of every channel, and two matmuls with an
// activation each that turn the means into one factor per channel.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "regions/epilogue.h"

namespace hone {

struct SqueezeExcite {
  const Node* pool = nullptr;
  const Node *squeeze = nullptr, *excite = nullptr;  // convolutions of one pixel with constant weights [to,from,1,1]
  std::vector<EpilogueStep> pooled, squeezed,
      excited;  // what is done to each: roundings, and to the latter two an activation

  int64_t channels() const { return squeeze->input(1)->constant->dims()[1]; }
  int64_t between() const { return squeeze->input(1)->constant->dims()[0]; }
  int64_t results() const { return excite->input(1)->constant->dims()[0]; }
};

/// Nothing where the region is anything else.
std::optional<SqueezeExcite> read_squeeze_excite(const Graph& region);

}  // namespace hone
