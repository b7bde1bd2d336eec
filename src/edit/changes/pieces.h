// SPDX-License-Identifier: Apache-2.0
//
// Parts of a model as models of their own: some of its nodes, what flows into them as inputs, and what others read of them as outputs.
// Any choice of nodes is a part, whatever lies between them: what left-out nodes would have made is an input, too.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "edit/infer.h"

namespace hone::edit {

/// Positions of nodes, ascending.
using Part = std::vector<size_t>;

class Pieces {
 public:
  /// Sorts the nodes. Throws Error where they have a cycle.
  explicit Pieces(Model model);

  const Model& model() const { return model_; }
  size_t nodes() const { return model_.graph.nodes.size(); }
  const Node& node(size_t position) const { return model_.graph.nodes[position]; }
  /// "Conv_3" for nodes without a name.
  std::string label(size_t position) const;
  /// The part, and all that reads its results, or all that they are computed of.
  Part with_readers(const Part& part) const;
  Part with_givers(const Part& part) const;

  /// What flows into the nodes and is no weight.
  std::vector<std::string> inputs_of(const Part& part) const;
  /// Results that others read, that the model gives, or that nobody reads.
  std::vector<std::string> outputs_of(const Part& part) const;
  enum class Types { needed, where_known };
  /// Throws Error naming an input whose type neither the model declares nor inference finds, where types are needed.
  Model piece(const Part& part, Types types = Types::needed) const;

 private:
  Value value_of(const std::string& name, bool needs_type) const;
  Part closed(const Part& part, const std::vector<std::vector<size_t>>& next) const;

  Model model_;
  mutable Model memory_;  // for what is added, the model's own
  std::vector<std::vector<std::string>> reads_;
  std::vector<std::vector<size_t>> readers_, givers_;
  std::unordered_map<std::string, size_t> producer_;
  std::unordered_set<std::string> weights_, inputs_, outputs_;
  std::optional<KnownTypes> types_;
  mutable std::unordered_map<std::string, Value> values_;  // of tensors at the edge of some piece
};

}  // namespace hone::edit
