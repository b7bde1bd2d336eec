// SPDX-License-Identifier: Apache-2.0
//
// Subgraphs by example: "Max(Min($x, $hi), $lo)" finds such nodes, "Clip($x, $lo, $hi)" takes their place. $name is any tensor, the same
// one wherever it stands; #name is a weight; Op[axis=1](...) asks for, or sets, an attribute; "domain::Op" names another domain.
// Several results stand behind each other: "$t = Conv($x, #w); Relu($t); Neg($t)". "$a, $b = Split($x)" names what a node makes; a name
// alone, "$t", says that others may read it, too.
#pragma once

#include <map>
#include <memory>

#include "edit/names.h"
#include "edit/values.h"

namespace hone::edit {

struct PatternNode {
  std::string op_type, domain;
  std::vector<std::pair<std::string, std::string>> attributes;  // values as they are written
  struct Operand {
    std::string tensor;
    bool weight = false;
  };
  std::vector<Operand> operands;
  std::vector<std::string> results;  // "=3": a tensor that the text gives no name
};

struct Pattern {
  std::vector<PatternNode> nodes;  // producers first
  std::vector<std::string> results;

  /// The node that makes a tensor; nothing for what comes from outside.
  std::optional<size_t> producer(const std::string& tensor) const;
};

/// Throws Error with the place where it cannot be read.
Pattern parse_pattern(std::string_view text);

struct Match {
  std::vector<size_t> nodes;  // the one that makes the first result first
  std::map<std::string, std::string> tensors;
};

/// Matches that do not overlap. What is computed inside of one, and is no result of the pattern, is read by nobody outside.
std::vector<Match> find_matches(const Graph& graph, const Pattern& pattern);
/// Puts `by` in the place of all matches; the results keep their names. How many there were. Throws Error where the numbers of results differ.
size_t replace_matches(Model& model, const Pattern& pattern, const Pattern& by);

}  // namespace hone::edit
