// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/extract.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "edit/changes/clean.h"
#include "edit/infer.h"
#include "edit/names.h"

namespace hone::edit {
namespace {

Value boundary_value(Model& model, const Boundary& boundary, const KnownTypes& known) {
  ValueType type = known.of(boundary.name).value_or(ValueType());
  if (!type.is_tensor) {
    for (const std::vector<Value>* values : {&model.graph.inputs, &model.graph.outputs, &model.graph.values})
      for (const Value& value : *values)
        if (value.name == boundary.name) return value;
  }
  if (boundary.element) type.element = *boundary.element;
  if (boundary.sizes) type.sizes = boundary.sizes;
  if (type.element == 0)
    throw Error(fmt::format("the type of {} is not known: the model does not declare it and it cannot be inferred",
                            boundary.name),
                fmt::format("write it: {}:[1,3,224,224]:float32", boundary.name));
  Value kept{boundary.name, {}};
  for (const std::vector<Value>* values : {&model.graph.inputs, &model.graph.outputs, &model.graph.values})
    for (const Value& value : *values)
      if (value.name == boundary.name) kept.bytes = value.bytes;
  if (!kept.bytes.empty() && type_of(kept) == type) return kept;
  return with_type(model, kept, type);
}

/// Results of nodes that an input replaces get another name, where the node goes on for another result.
void cut_producers(Graph& graph, const std::set<std::string>& cut) {
  std::unordered_set<std::string> taken = tensor_names(graph);
  for (Node& node : graph.nodes)
    for (std::string& output : node.outputs)
      if (cut.contains(output)) output = fresh_name(taken, std::string(output).append("_before_cut"));
  std::erase_if(graph.weights, [&](const Weight& weight) { return cut.contains(weight.name); });
}

std::vector<std::string> undefined(const Graph& graph) {
  const Index index(graph);
  std::set<std::string> missing;
  const auto check = [&](const std::string& name) {
    if (!index.producer.contains(name) && !index.weight.contains(name) && !index.inputs.contains(name) &&
        !index.sparse.contains(name))
      missing.insert(name);
  };
  for (const Node& node : graph.nodes) std::ranges::for_each(reads_of(node), check);
  for (const Value& output : graph.outputs) check(output.name);
  return {missing.begin(), missing.end()};
}

}  // namespace

Boundary parse_boundary(const std::string& text, bool output) {
  Boundary boundary;
  std::string rest = text;
  // From the end, since names hold colons: a type, and before it the sizes of an input.
  const auto cut_off = [&]() -> std::optional<std::string> {
    int depth = 0;
    for (size_t at = rest.size(); at-- > 0;) {
      depth += rest[at] == ']' ? 1 : rest[at] == '[' ? -1 : 0;
      if (rest[at] != ':' || depth != 0) continue;
      std::string last = rest.substr(at + 1);
      const bool is_type = last == "auto" || parse_type(last);
      const bool is_shape = last == "auto" || (!last.empty() && (last.front() == '[' || last.front() == '('));
      if (!is_type && !is_shape) return std::nullopt;
      rest = rest.substr(0, at);
      return last;
    }
    return std::nullopt;
  };
  std::vector<std::string> parts;
  while (parts.size() < 2) {
    std::optional<std::string> part = cut_off();
    if (!part) break;
    parts.push_back(std::move(*part));
    if (output && parts.back() == "auto") break;
  }
  for (const std::string& part : parts) {
    if (part == "auto") continue;
    if (part.front() == '[' || part.front() == '(') boundary.sizes = parse_sizes(part);
    else boundary.element = parse_type(part);
  }
  boundary.name = rest;
  return boundary;
}

void extract(Model& model, const std::vector<Boundary>& inputs, const std::vector<Boundary>& outputs) {
  Graph& graph = model.graph;
  const Index index(graph);
  for (const std::vector<Boundary>* list : {&inputs, &outputs})
    for (const Boundary& boundary : *list) need_tensor(graph, index, boundary.name);
  const KnownTypes known(model);
  std::vector<Value> new_inputs, new_outputs;
  std::set<std::string> cut;
  for (const Boundary& boundary : inputs) {
    new_inputs.push_back(boundary_value(model, boundary, known));
    if (!index.inputs.contains(boundary.name)) cut.insert(boundary.name);
  }
  for (const Boundary& boundary : outputs) new_outputs.push_back(boundary_value(model, boundary, known));
  for (const std::vector<Value>* list : {&new_inputs, &new_outputs}) {
    std::set<std::string> seen;
    for (const Value& value : *list)
      if (!seen.insert(value.name).second)
        throw UnknownName(fmt::format("{} is named twice", value.name), "name every tensor once");
  }
  const std::vector<Value> own = graph.inputs;
  if (!outputs.empty()) graph.outputs = std::move(new_outputs);
  cut_producers(graph, cut);
  if (!inputs.empty()) graph.inputs = std::move(new_inputs);
  clean(model);
  if (inputs.empty()) {  // of the model's own those that are needed
    const Index after(graph);
    std::erase_if(graph.inputs, [&](const Value& input) {
      return !after.consumers.contains(input.name) && !after.outputs.contains(input.name);
    });
  }
  const std::vector<std::string> missing = undefined(graph);
  if (missing.empty()) return;
  throw UnknownName(fmt::format("the outputs also depend on {}", join(missing, ", ")),
                    "add it to --inputs, or move --inputs further down");
}

}  // namespace hone::edit
