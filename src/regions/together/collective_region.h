// SPDX-License-Identifier: Apache-2.0
//
// A region that is what several ranks do together, as backends launch it: never with a neighbour, never on another layout.
#pragma once

#include "device/group.h"
#include "device/tactic.h"

namespace hone {

/// What a plan keeps of it.
struct CollectiveCode {
  CollectiveKind kind = CollectiveKind::all_reduce;
  ReduceKind reduce = ReduceKind::sum;
  int64_t root = 0, group_size = 0;  // 0: all ranks
  std::vector<int64_t> groups;       // so many ranks each, one group behind the other; empty: all ranks

  static constexpr int64_t kMostRanks = 1 << 16;
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("kind", self.kind);
    visit("reduce", self.reduce);
    visit("root", self.root, 0, kMostRanks);
    visit("group_size", self.group_size, 0, kMostRanks);
    visit("groups", self.groups, 0, kMostRanks);
  }
};

inline constexpr std::string_view kCollectiveFamily = "collective";

/// The node of a region that is nothing else; null for all others.
const Node* collective_node(const Graph& region);
/// Offers "<source>.<operation>", where the region is a collective.
void offer_collective(const Problem& problem, std::string_view source, Candidates& out);
Compiled compile_collective(const Problem& problem, int64_t version);
/// The call at concrete sizes. Throws Error without a group, where the group is another than the plan's, or the sizes do not fit.
CollectiveForm collective_form(const Blob& code, const KernelShapes& shapes, const Group* group,
                               std::string_view source, int64_t version);

}  // namespace hone
