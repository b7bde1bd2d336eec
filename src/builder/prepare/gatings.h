// SPDX-License-Identifier: Apache-2.0
//
// Where a network is sensitive to rounding: a product of two results, element by element (a gated linear unit), hands on the relative
// errors of both, so what is lost before many of them grows. Factors that are broadcast (attention to channels) do not count.
#pragma once

#include <map>

#include "ir/graph.h"

namespace hone {

class Gatings {
 public:
  explicit Gatings(const Graph& graph);

  /// On the way from a node to the network's results the most elementwise products of two results, its own not counted.
  int behind(const Node& node) const { return behind_.at(&node); }
  /// Whether those are so many that the shorter forms of f32 are not good enough for it.
  bool many_behind(const Node& node) const;

 private:
  std::map<const Node*, int> behind_;
};

}  // namespace hone
