// SPDX-License-Identifier: Apache-2.0
#include "edit/names.h"

#include <algorithm>

#include "base/text.h"

namespace hone::edit {
namespace {

/// What the graph defines itself: names of an enclosing graph are hidden by these.
std::unordered_set<std::string> defined_in(const Graph& graph) {
  std::unordered_set<std::string> names;
  for (const Value& input : graph.inputs) names.insert(input.name);
  for (const Weight& weight : graph.weights) names.insert(weight.name);
  for (const Value& sparse : graph.sparse) names.insert(sparse.name);
  for (const Node& node : graph.nodes) names.insert(node.outputs.begin(), node.outputs.end());
  return names;
}

void add_captured(const Graph& body, std::vector<std::string>& reads) {
  const std::unordered_set<std::string> own = defined_in(body);
  const auto add = [&](const std::string& name) {
    if (!name.empty() && !own.contains(name)) reads.push_back(name);
  };
  for (const Node& node : body.nodes)
    for (const std::string& name : reads_of(node)) add(name);
  for (const Value& output : body.outputs) add(output.name);
}

[[noreturn]] void refuse(std::string_view what, const std::string& name, const std::vector<std::string_view>& known) {
  std::vector<std::pair<size_t, std::string_view>> near;
  const std::string_view best = nearest(name, known);
  throw UnknownName(fmt::format("{}: {} does not exist in the model", what, name),
                    best.empty() ? "" : fmt::format("did you mean {}?", best));
}

}  // namespace

std::vector<std::string> reads_of(const Node& node) {
  std::vector<std::string> reads;
  for (const std::string& name : node.inputs)
    if (!name.empty()) reads.push_back(name);
  for (const Attribute& attribute : node.attributes)
    for (const auto& body : attribute.bodies) add_captured(*body, reads);
  return reads;
}

Index::Index(const Graph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const std::string& name : graph.nodes[i].outputs)
      if (!name.empty()) producer.emplace(name, i);
    for (const std::string& name : reads_of(graph.nodes[i])) {
      std::vector<size_t>& readers = consumers[name];
      if (readers.empty() || readers.back() != i) readers.push_back(i);
    }
  }
  for (size_t i = 0; i < graph.weights.size(); ++i) weight.emplace(graph.weights[i].name, i);
  for (const Value& each : graph.inputs) inputs.insert(each.name);
  for (const Value& each : graph.outputs) outputs.insert(each.name);
  for (const Value& each : graph.sparse) sparse.insert(each.name);
}

bool Index::knows(const std::string& tensor) const {
  return producer.contains(tensor) || weight.contains(tensor) || inputs.contains(tensor) || sparse.contains(tensor) ||
         consumers.contains(tensor);
}

std::unordered_set<std::string> tensor_names(const Graph& graph) {
  std::unordered_set<std::string> names = defined_in(graph);
  for (const Node& node : graph.nodes)
    for (const std::string& name : reads_of(node)) names.insert(name);
  for (const Value& output : graph.outputs) names.insert(output.name);
  for (const Value& value : graph.values) names.insert(value.name);
  return names;
}

std::string fresh_name(std::unordered_set<std::string>& taken, const std::string& base) {
  std::string name = base;
  for (int i = 1; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

std::string label_of(const Node& node, size_t position) {
  return node.name.empty() ? fmt::format("{}_{}", node.op_type, position) : node.name;
}

void need_tensor(const Graph& graph, const Index& index, const std::string& tensor) {
  if (index.knows(tensor)) return;
  const std::unordered_set<std::string> names = tensor_names(graph);
  refuse("Tensor", tensor, {names.begin(), names.end()});
}

size_t find_node(const Graph& graph, const std::string& name) {
  std::vector<std::string> labels;
  std::vector<size_t> found;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    labels.push_back(label_of(graph.nodes[i], i));
    if (labels.back() == name) found.push_back(i);
  }
  if (found.size() > 1)
    throw UnknownName(fmt::format("{} nodes are called {}", found.size(), name),
                      "name one by a tensor that it makes, or give the nodes names of their own");
  if (found.size() == 1) return found.front();
  const Index index(graph);
  if (const auto at = index.producer.find(name); at != index.producer.end()) return at->second;
  refuse("Node", name, {labels.begin(), labels.end()});
}

namespace {

void rename_reads(Node& node, const std::string& from, const std::string& to);

void rename_in_body(Graph& body, const std::string& from, const std::string& to) {
  if (defined_in(body).contains(from)) return;
  for (Node& node : body.nodes) rename_reads(node, from, to);
  for (Value& output : body.outputs)
    if (output.name == from) output.name = to;
}

void rename_reads(Node& node, const std::string& from, const std::string& to) {
  std::ranges::replace(node.inputs, from, to);
  for (Attribute& attribute : node.attributes)
    for (const auto& body : attribute.bodies) rename_in_body(*body, from, to);
}

}  // namespace

void rename_tensor(Graph& graph, const std::string& from, const std::string& to) {
  for (Node& node : graph.nodes) {
    rename_reads(node, from, to);
    std::ranges::replace(node.outputs, from, to);
  }
  for (Weight& weight : graph.weights)
    if (weight.name == from) weight.name = to;
  for (std::vector<Value>* values : {&graph.inputs, &graph.outputs, &graph.values})
    for (Value& value : *values)
      if (value.name == from) value.name = to;
}

}  // namespace hone::edit
