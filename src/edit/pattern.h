// SPDX-License-Identifier: Apache-2.0
//
// Subgraphs by example: "Max(Min($x, $hi), $lo)" finds such nodes, "Clip($x, $lo, $hi)" takes their place. $name is any tensor, the same
// one wherever it stands; #name is a weight; Op[axis=1](...) asks for, or sets, an attribute; "domain::Op" names another domain.
#pragma once

#include <map>
#include <memory>

#include "edit/names.h"
#include "edit/values.h"

namespace hone::edit {

struct Pattern {
  std::string op_type, domain;  // empty: a tensor
  std::string tensor;           // its name, without the sign
  bool weight = false;
  std::vector<std::pair<std::string, std::string>> attributes;  // values as they are written
  std::vector<Pattern> operands;
};

/// Throws Error with the place where it cannot be read.
Pattern parse_pattern(std::string_view text);

struct Match {
  std::vector<size_t> nodes;  // the root first
  std::map<std::string, std::string> tensors;
};

/// Matches that do not overlap. What is computed inside of one is read by nobody outside.
std::vector<Match> find_matches(const Graph& graph, const Pattern& pattern);
/// Puts `by` in the place of all matches; the result keeps its name. How many there were.
size_t replace_matches(Model& model, const Pattern& pattern, const Pattern& by);

}  // namespace hone::edit
