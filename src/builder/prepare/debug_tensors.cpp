// SPDX-License-Identifier: Apache-2.0
#include "builder/prepare/debug_tensors.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace hone {
namespace {

/// The graph's tensors with their names, constants apart.
std::map<std::string_view, Value*> computed_values(const Graph& graph) {
  std::map<std::string_view, Value*> values;
  for (Value* input : graph.inputs()) values.emplace(input->name, input);
  for (const Node* node : graph.nodes())
    for (Value* output : node->outputs)
      if (!output->name.empty()) values.emplace(output->name, output);
  return values;
}

bool is_constant_name(const Graph& graph, std::string_view name) {
  for (const Node* node : graph.nodes())
    for (const Value* input : node->inputs)
      if (input != nullptr && input->is_constant() && input->name == name) return true;
  return false;
}

[[noreturn]] void refuse(const Graph& graph, const std::map<std::string_view, Value*>& values, std::string_view name) {
  if (is_constant_name(graph, name))
    throw Error(fmt::format("{} is a constant of the model, so it cannot be a debug tensor", name),
                "its contents stand in the model's file");
  std::vector<std::string_view> names;
  for (const auto& [known, value] : values) names.push_back(known);
  throw Error(fmt::format("--markDebug: the network has no tensor called {}", name),
              fmt::format("the nearest name is {}", nearest(name, names)));
}

}  // namespace

void append_debug_outputs(Graph& graph, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const std::map<std::string_view, Value*> values = computed_values(graph);
  std::vector<Value*> outputs = graph.outputs();
  for (const std::string& name : names) {
    const auto found = values.find(name);
    if (found == values.end()) refuse(graph, values, name);
    Value* value = found->second;
    if (value->producer != nullptr && std::ranges::find(outputs, value) == outputs.end()) outputs.push_back(value);
  }
  graph.set_outputs(std::move(outputs));
}

void mark_debug_io(Profile& profile, const std::vector<std::string>& names) {
  for (BufferSlot& slot : profile.buffers)
    if (slot.kind != BufferKind::arena && slot.alias < 0 && std::ranges::find(names, slot.name) != names.end())
      slot.debug = true;
}

void mark_unfused(Profile& profile) {
  std::set<std::string_view> marked;
  for (const BufferSlot& slot : profile.buffers)
    if (slot.debug) marked.insert(slot.name);
  for (const Step& step : profile.steps) {
    if (step.kind == "Reformat") continue;
    for (const BufferId id : step.outputs) {
      BufferSlot& slot = profile.buffers[static_cast<size_t>(id)];
      if (slot.kind == BufferKind::arena && !slot.name.empty() && marked.insert(slot.name).second) slot.debug = true;
    }
  }
}

}  // namespace hone
