// SPDX-License-Identifier: Apache-2.0
//
// Who makes a tensor and who reads it, by names. Positions are those of graph.nodes at the time the index was made.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "edit/model.h"

namespace hone::edit {

struct Index {
  explicit Index(const Graph& graph);

  std::unordered_map<std::string, size_t> producer;                // of results of nodes
  std::unordered_map<std::string, std::vector<size_t>> consumers;  // each node once; reads of its bodies are its own
  std::unordered_map<std::string, size_t> weight;                  // position in graph.weights
  std::unordered_set<std::string> inputs, outputs, sparse;

  bool knows(const std::string& tensor) const;
};

/// The tensors that a node reads, those that its bodies take from around it among them.
std::vector<std::string> reads_of(const Node& node);
/// Every name of a tensor of the graph.
std::unordered_set<std::string> tensor_names(const Graph& graph);
/// A name made of `base` that is not in `taken`, which it joins.
std::string fresh_name(std::unordered_set<std::string>& taken, const std::string& base);
/// "Relu_3" where the node has no name.
std::string label_of(const Node& node, size_t position);
/// Throws UnknownName, which names the nearest, unless the graph has such a tensor.
void need_tensor(const Graph& graph, const Index& index, const std::string& tensor);
/// The positions of nodes of this name; where none has it, of the one that makes a tensor of this name. Throws UnknownName.
size_t find_node(const Graph& graph, const std::string& name);

/// Something that a command line names is not in the model.
class UnknownName : public Error {
 public:
  using Error::Error;
};

/// Names a tensor anew everywhere in the graph and in bodies that read it.
void rename_tensor(Graph& graph, const std::string& from, const std::string& to);

}  // namespace hone::edit
