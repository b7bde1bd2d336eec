// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/pieces.h"

#include <algorithm>

#include "edit/changes/clean.h"
#include "edit/names.h"

namespace hone::edit {

Pieces::Pieces(Model model) : model_(std::move(model)) {
  memory_.added = model_.added;
  sort_nodes(model_);
  types_.emplace(model_);
  const Graph& graph = model_.graph;
  for (const Weight& weight : graph.weights) weights_.insert(weight.name);
  for (const Value& sparse : graph.sparse) weights_.insert(sparse.name);
  for (const Value& input : graph.inputs)
    if (!weights_.contains(input.name)) inputs_.insert(input.name);
  for (const Value& output : graph.outputs) outputs_.insert(output.name);
  readers_.resize(nodes());
  givers_.resize(nodes());
  for (size_t i = 0; i < nodes(); ++i) {
    reads_.push_back(reads_of(node(i)));
    for (const std::string& name : reads_[i])
      if (const auto giver = producer_.find(name); giver != producer_.end()) {
        givers_[i].push_back(giver->second);
        readers_[giver->second].push_back(i);
      }
    for (const std::string& output : node(i).outputs)
      if (!output.empty()) producer_[output] = i;
  }
}

std::string Pieces::label(size_t position) const { return label_of(node(position), position); }

Part Pieces::closed(const Part& part, const std::vector<std::vector<size_t>>& next) const {
  std::vector<bool> chosen(nodes());
  std::vector<size_t> waiting(part);
  while (!waiting.empty()) {
    const size_t at = waiting.back();
    waiting.pop_back();
    if (chosen[at]) continue;
    chosen[at] = true;
    waiting.insert(waiting.end(), next[at].begin(), next[at].end());
  }
  Part result;
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i]) result.push_back(i);
  return result;
}

Part Pieces::with_readers(const Part& part) const { return closed(part, readers_); }
Part Pieces::with_givers(const Part& part) const { return closed(part, givers_); }

std::vector<std::string> Pieces::inputs_of(const Part& part) const {
  std::unordered_set<std::string> inside, seen;
  for (const size_t i : part) inside.insert(node(i).outputs.begin(), node(i).outputs.end());
  std::vector<std::string> names;
  for (const size_t i : part)
    for (const std::string& name : reads_[i]) {
      const bool flows_in = inputs_.contains(name) || (producer_.contains(name) && !inside.contains(name));
      if (flows_in && seen.insert(name).second) names.push_back(name);
    }
  // The model's own come first, in its order.
  std::vector<std::string> ordered;
  for (const Value& input : model_.graph.inputs)
    if (seen.contains(input.name)) ordered.push_back(input.name);
  for (std::string& name : names)
    if (!inputs_.contains(name)) ordered.push_back(std::move(name));
  return ordered;
}

std::vector<std::string> Pieces::outputs_of(const Part& part) const {
  std::vector<bool> chosen(nodes());
  for (const size_t i : part) chosen[i] = true;
  std::vector<std::string> names;
  for (const size_t i : part) {
    std::unordered_set<std::string> inside, outside;
    for (const size_t reader : readers_[i])
      (chosen[reader] ? inside : outside).insert(reads_[reader].begin(), reads_[reader].end());
    const auto is_used = [&](const std::string& name) {
      return inside.contains(name) || outside.contains(name) || outputs_.contains(name);
    };
    // A second result that nobody has ever read is none of interest, unless the node has no other.
    const bool any_used = std::ranges::any_of(node(i).outputs, is_used);
    for (const std::string& name : node(i).outputs) {
      if (name.empty()) continue;
      if (outputs_.contains(name) || outside.contains(name) || !any_used) names.push_back(name);
    }
  }
  return names;
}

Value Pieces::value_of(const std::string& name, bool needs_type) const {
  for (const std::vector<Value>* list : {&model_.graph.inputs, &model_.graph.outputs})
    for (const Value& value : *list)
      if (value.name == name && (list == &model_.graph.inputs || type_of(value).element != 0)) return value;
  if (const auto kept = values_.find(name); kept != values_.end()) return kept->second;
  const std::optional<ValueType> type = types_->of(name);
  if (type && type->is_tensor && type->element != 0)
    return values_.emplace(name, with_type(memory_, {name, {}}, *type)).first->second;
  for (const Value& value : model_.graph.values)
    if (value.name == name) return value;
  if (needs_type)
    throw Error(fmt::format("the type of tensor {} is not known", name),
                "the file does not declare it, and it cannot be inferred: hone check lint MODEL shows why");
  return {name, {}};
}

Model Pieces::piece(const Part& part, Types types) const {
  Model piece = model_;
  Graph& graph = piece.graph;
  graph.nodes.clear();
  std::unordered_set<std::string> read, made;
  for (const size_t i : part) {
    graph.nodes.push_back(node(i));
    read.insert(reads_[i].begin(), reads_[i].end());
    made.insert(node(i).outputs.begin(), node(i).outputs.end());
  }
  graph.inputs.clear();
  graph.outputs.clear();
  for (const std::string& name : inputs_of(part)) graph.inputs.push_back(value_of(name, types == Types::needed));
  for (const std::string& name : outputs_of(part)) graph.outputs.push_back(value_of(name, false));
  std::erase_if(graph.weights, [&](const Weight& weight) { return !read.contains(weight.name); });
  std::erase_if(graph.sparse, [&](const Value& sparse) { return !read.contains(sparse.name); });
  std::erase_if(graph.values, [&](const Value& value) { return !made.contains(value.name); });
  return piece;
}

}  // namespace hone::edit
