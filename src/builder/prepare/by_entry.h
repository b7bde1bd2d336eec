// SPDX-License-Identifier: Apache-2.0
//
// The head of a network, where tensors are large and weights few, goes entry by entry: a batch of such tensors does not fit into the
// processor's caches, one entry does. (Eight images: efficientnet_b0's first tensors are 38 MB together.)
#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include "builder/layers.h"
#include "builder/session.h"

namespace hone {

/// Moves the regions that are to go entry by entry to the front and gives them their rounds; none where it would not pay.
void mark_by_entry(const BuildSession& session, const ProfilePoints& points, std::vector<Region>& regions);

/// The problem of one entry.
Problem of_one_entry(Problem problem, const Region& region);

/// Of one entry.
TensorType entry_type(TensorType type);

/// Which tensors the layers that go entry by entry see, and which the others do.
class Turns {
 public:
  Turns(const Graph& graph, std::span<const Layer> layers);

  int64_t rounds() const { return rounds_; }  // 1: no layer goes entry by entry
  bool seen_inside(const Value& value) const;
  bool seen_outside(const Value& value) const;

 private:
  const Graph& graph_;
  int64_t rounds_ = 1;
  std::unordered_set<const Node*> nodes_;
};

}  // namespace hone
