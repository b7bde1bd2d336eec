// SPDX-License-Identifier: Apache-2.0
//
// Edits of single nodes and weights. Names that are not in the model throw UnknownName.
#pragma once

#include "edit/values.h"

namespace hone::edit {

struct NewNode {
  std::string op_type, name, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<std::pair<std::string, AttributeValue>> attributes;
};

/// Puts a node between tensors: what lay between them goes. A tensor that is both input and output is read by the node, and whoever read it
/// reads the node's result.
void insert_node(Model& model, const NewNode& given);
/// Adds a node; outputs that nobody makes yet are new tensors.
void add_node(Model& model, const NewNode& given);
/// Takes a node out: who read its results reads its first input (of several results, the input at the same position).
void remove_node(Model& model, size_t position);
/// Exchanges a weight's elements. Throws Error for other sizes or another type.
void set_weight(Model& model, const std::string& name, const Tensor& tensor);
/// Who reads a tensor, bodies included, reads another one; outputs of the graph keep theirs.
void replace_uses(Graph& graph, const std::string& from, const std::string& to);
/// Names a tensor anew; throws Error where the new name is taken.
void rename(Model& model, const std::string& from, const std::string& to);

}  // namespace hone::edit
