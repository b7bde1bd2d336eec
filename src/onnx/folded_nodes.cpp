// SPDX-License-Identifier: Apache-2.0
#include "onnx/folded_nodes.h"

#include <algorithm>
#include <set>

#include "base/utf8.h"
#include "onnx/rules.h"

namespace hone::onnx {
namespace {

using Names = std::set<std::string_view>;

/// Backwards from the outputs. Nodes need not stand in order, so this repeats until nothing is added.
std::vector<const NodeProto*> live_nodes(const GraphProto& model) {
  Names wanted;
  for (const ValueProto& output : model.outputs) wanted.insert(output.name);
  std::set<const NodeProto*> live;
  for (bool grew = true; grew;) {
    grew = false;
    for (auto node = model.nodes.rbegin(); node != model.nodes.rend(); ++node) {
      const bool needed = std::ranges::any_of(
          node->outputs, [&](std::string_view name) { return !name.empty() && wanted.contains(name); });
      if (!needed || !live.insert(&*node).second) continue;
      add_reads(*node, wanted);
      grew = true;
    }
  }
  return {live.begin(), live.end()};
}

void add_origins(const Graph& graph, std::set<std::string, std::less<>>& names) {
  for (const Node* node : graph.nodes()) {
    names.insert(node->origin.begin(), node->origin.end());
    for (const auto& body : node->bodies) add_origins(*body, names);
  }
}

void add_constants(const Graph& graph, std::set<std::string, std::less<>>& names) {
  for (const Node* node : graph.nodes()) {
    for (const Value* input : node->inputs)
      if (input != nullptr && input->is_constant()) names.insert(input->name);
    for (const auto& body : node->bodies) add_constants(*body, names);
  }
}

}  // namespace

void add_reads(const NodeProto& node, std::set<std::string_view>& names) {
  const std::vector<std::string_view> read = names_read(node);
  names.insert(read.begin(), read.end());
  for (const AttributeProto& attribute : node.attributes)
    if (attribute.graph != nullptr)
      for (const NodeProto& inner : attribute.graph->nodes) add_reads(inner, names);
}

std::vector<std::string> live_names(const GraphProto& model) {
  std::vector<const NodeProto*> nodes = live_nodes(model);
  std::ranges::sort(nodes);  // they lie in one vector: by address is in the model's order
  std::vector<std::string> names;
  for (const NodeProto* node : nodes)
    if (!node->name.empty() && node->op_type != "Constant") names.push_back(valid_utf8(node->name));
  return names;
}

std::vector<std::string> folded_nodes(const std::vector<std::string>& live, const Graph& graph) {
  std::set<std::string, std::less<>> present;
  add_origins(graph, present);
  std::vector<std::string> folded;
  std::ranges::copy_if(live, std::back_inserter(folded),
                       [&](const std::string& name) { return !present.contains(name); });
  return folded;
}

std::vector<std::string> consumed_weights(const GraphProto& model, const Graph& graph) {
  std::set<std::string, std::less<>> present;
  add_constants(graph, present);
  Names read;
  for (const NodeProto& node : model.nodes) add_reads(node, read);
  std::vector<std::string> consumed;
  for (const TensorProto& tensor : model.initializers)
    if (read.contains(tensor.name) && !present.contains(valid_utf8(tensor.name)))
      consumed.push_back(valid_utf8(tensor.name));
  return consumed;
}

}  // namespace hone::onnx
