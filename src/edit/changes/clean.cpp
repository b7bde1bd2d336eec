// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/clean.h"

#include <algorithm>
#include <queue>

#include "base/text.h"

namespace hone::edit {
namespace {

/// The nodes of a cycle among those that are left, by their labels.
std::string cycle_of(const std::vector<Node>& nodes, const std::vector<std::vector<size_t>>& producers,
                     const std::vector<bool>& placed) {
  // From any node that is left, going backwards through those that are left must meet a node again.
  size_t at = static_cast<size_t>(std::ranges::find(placed, false) - placed.begin());
  std::vector<size_t> path, seen(nodes.size(), 0);
  while (seen[at] == 0) {
    path.push_back(at);
    seen[at] = path.size();
    at = *std::ranges::find_if(producers[at], [&](size_t producer) { return !placed[producer]; });
  }
  std::vector<std::string> names;
  for (size_t i = path.size(); i-- > seen[at] - 1;) names.push_back(label_of(nodes[path[i]], path[i]));
  names.push_back(names.front());
  return join(names, " -> ");
}

void sort_list(std::vector<Node>& nodes) {
  std::unordered_map<std::string, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& name : nodes[i].outputs)
      if (!name.empty()) producer.emplace(name, i);
  std::vector<std::vector<size_t>> producers(nodes.size()), readers(nodes.size());
  std::vector<size_t> missing(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& name : reads_of(nodes[i]))
      if (const auto at = producer.find(name); at != producer.end()) {
        producers[i].push_back(at->second);
        readers[at->second].push_back(i);
        ++missing[i];
      }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0) ready.push(i);
  std::vector<bool> placed(nodes.size(), false);
  std::vector<Node> sorted;
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t at = ready.top();
    ready.pop();
    placed[at] = true;
    order.push_back(at);
    for (const size_t reader : readers[at])
      if (--missing[reader] == 0) ready.push(reader);
  }
  if (order.size() != nodes.size())
    throw Error(fmt::format("the graph has a cycle: {}", cycle_of(nodes, producers, placed)),
                "an output of the last node is read by the first; break the circle");
  for (const size_t at : order) sorted.push_back(std::move(nodes[at]));
  nodes = std::move(sorted);
  for (Node& node : nodes)
    for (Attribute& attribute : node.attributes)
      for (const auto& body : attribute.bodies) sort_list(body->nodes);
}

/// Marks what the wanted tensors depend on.
std::vector<bool> live_nodes(const std::vector<Node>& nodes, std::vector<std::string> wanted) {
  std::unordered_map<std::string, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& name : nodes[i].outputs)
      if (!name.empty()) producer.emplace(name, i);
  std::vector<bool> live(nodes.size(), false);
  while (!wanted.empty()) {
    const std::string name = std::move(wanted.back());
    wanted.pop_back();
    const auto at = producer.find(name);
    if (at == producer.end() || live[at->second]) continue;
    live[at->second] = true;
    for (std::string& read : reads_of(nodes[at->second])) wanted.push_back(std::move(read));
  }
  return live;
}

size_t remove_dead(std::vector<Node>& nodes, std::vector<std::string> wanted) {
  const std::vector<bool> live = live_nodes(nodes, std::move(wanted));
  const size_t before = nodes.size();
  size_t at = 0;
  std::erase_if(nodes, [&](const Node&) { return !live[at++]; });
  size_t removed = before - nodes.size();
  for (Node& node : nodes)
    for (Attribute& attribute : node.attributes)
      for (const auto& body : attribute.bodies) removed += clean(*body);
  return removed;
}

}  // namespace

void remove_nodes(Graph& graph, const std::vector<bool>& marked) {
  size_t at = 0;
  std::erase_if(graph.nodes, [&](const Node&) { return marked[at++]; });
}

size_t clean(Graph& graph) {
  std::vector<std::string> wanted;
  for (const Value& output : graph.outputs) wanted.push_back(output.name);
  const size_t removed = remove_dead(graph.nodes, std::move(wanted));
  std::unordered_set<std::string> used, made;
  for (const Node& node : graph.nodes) {
    for (std::string& name : reads_of(node)) used.insert(std::move(name));
    made.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const Value& output : graph.outputs) used.insert(output.name);
  std::unordered_set<std::string> gone;
  const auto unused = [&](const auto& each) {
    if (used.contains(each.name)) return false;
    gone.insert(each.name);
    return true;
  };
  std::erase_if(graph.weights, unused);
  std::erase_if(graph.sparse, unused);
  // Older models list weights among the inputs, too.
  std::erase_if(graph.inputs, [&](const Value& input) { return gone.contains(input.name); });
  for (const Value& input : graph.inputs) made.insert(input.name);
  for (const Weight& weight : graph.weights) made.insert(weight.name);
  std::erase_if(graph.values, [&](const Value& value) { return !made.contains(value.name); });
  return removed;
}

void drop_unread_weights(Graph& graph) {
  std::unordered_set<std::string> used;
  for (const Node& node : graph.nodes)
    for (std::string& name : reads_of(node)) used.insert(std::move(name));
  for (const Value& output : graph.outputs) used.insert(output.name);
  std::unordered_set<std::string> gone;
  std::erase_if(graph.weights,
                [&](const Weight& weight) { return !used.contains(weight.name) && gone.insert(weight.name).second; });
  std::erase_if(graph.inputs, [&](const Value& input) { return gone.contains(input.name); });
}

size_t clean(Model& model) {
  size_t removed = clean(model.graph);
  for (Function& function : model.functions) removed += remove_dead(function.nodes, function.outputs);
  return removed;
}

void sort_nodes(Model& model) {
  sort_list(model.graph.nodes);
  for (Function& function : model.functions) sort_list(function.nodes);
}

}  // namespace hone::edit
