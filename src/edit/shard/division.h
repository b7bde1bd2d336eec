// SPDX-License-Identifier: Apache-2.0
//
// What of a model is divided over ranks, and how. A cut tensor is a share of the whole one; everything else is the same on every rank.
#pragma once

#include <map>
#include <set>

#include "edit/shard/facts.h"

namespace hone::edit {

/// An axis seen as `outer` parts of one size, of each of which every rank has a block: of queries, keys and values in one matrix there are
/// three parts.
struct Cut {
  size_t axis = 0;
  int64_t outer = 1;
  friend auto operator<=>(const Cut&, const Cut&) = default;
};

/// An operand of a node: its position in the graph, and which.
using Operand = std::pair<size_t, size_t>;

/// Something that stays whole, and why.
struct Whole {
  std::string node, weight, reason;
  int64_t elements = 0;
};

struct Division {
  int ranks = 2;
  std::map<std::string, Cut> tensors;  // results of nodes, and inputs of the model
  std::map<Operand, Cut> constants;    // operands whose constants are cut
  std::map<Operand, Cut> shares;       // operands that are whole, of which the node reads a rank's share
  std::map<Operand, std::vector<int64_t>>
      sizes;                       // operands that say sizes (of Reshape, Expand, Split): what they say of a share
  std::set<size_t> columns;        // products whose results are cut
  std::set<size_t> rows;           // products whose results are to be added up
  std::set<std::string> gathered;  // results that are put together again
  std::vector<Whole> whole;

  size_t pairs = 0, heads = 0, tables = 0;  // sums behind pairs; products and tables that are put together alone
};

/// Throws Error where nothing can be divided. Weights of fewer elements than `least` outside of pairs stay whole.
Division divide(const Facts& facts, int ranks, int64_t least = 1 << 20);

}  // namespace hone::edit
