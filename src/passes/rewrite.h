// SPDX-License-Identifier: Apache-2.0
//
// Rewrites: patterns and replacements written as IR text.
//
//   match:    %a = Div(%x, 1.4142135)         a number matches a constant whose elements all have about that value
//             %b = Softmax(%a) {axis=-1}      attributes named must be equal; others are free
//             %y = Mul(%b, %w:const)          %w must be a constant; `_` is an operand that is not given
//
// The last line is the root. Operands of commutative operators match in either order. A value that the pattern computes
// on the way must have no user outside the match. `replace` (IR text again) defines the root's result anew; where weights
// or attributes must be computed, `build` does it in C++. `when` is a further condition.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "passes/pass.h"

namespace hone {

/// What a pattern found: values by the names of the pattern.
class Match {
 public:
  Match(Graph& graph, Node* root, std::map<std::string, Value*, std::less<>> values, std::vector<Node*> nodes)
      : graph_(graph), root_(root), values_(std::move(values)), nodes_(std::move(nodes)) {}

  Graph& graph() const { return graph_; }
  Node* root() const { return root_; }
  Value* operator[](std::string_view name) const;  ///< throws InternalError for a name the pattern lacks
  Node* node(std::string_view name) const { return (*this)[name]->producer; }
  const std::vector<Node*>& nodes() const { return nodes_; }  ///< matched nodes in graph order

  /// Adds a node in place of the match: it stands before the root and carries the names and origins of all parts.
  Node* add(const OpDef& op, std::vector<Value*> inputs, Attrs attrs = {}) const;
  /// Ends the rewrite: the root's result becomes `value`.
  void replace(Value* value) const;

 private:
  Graph& graph_;
  Node* root_;
  std::map<std::string, Value*, std::less<>> values_;
  std::vector<Node*> nodes_;
};

struct Rewrite {
  std::string_view name;
  std::string_view match;
  std::string_view replace = {};
  bool (*when)(const Match&) = nullptr;
  void (*build)(const Match&) = nullptr;
};

/// Applies the rewrites everywhere in one walk over the graph; the first that matches wins. Returns how often one did.
size_t apply(Graph& graph, std::span<const Rewrite> rewrites, const PassContext& context);

/// Throws InternalError when a pattern has a typo: unknown operator or attribute, undefined name, unused line.
void check_rewrite(const Rewrite& rewrite);

}  // namespace hone
