// SPDX-License-Identifier: Apache-2.0
//
// Everything follows from one map: symbol to the node that decides it.
#include "builder/prepare/data_sizes.h"

#include <algorithm>
#include <unordered_map>

#include "ir/op.h"

namespace hone {
namespace {

bool needs_host(const TensorType& type) { return is_object(type.dtype) || !type.ranked; }

std::set<std::string> symbols_of(const Shape& shape) {
  std::set<std::string> names;
  for (const Dim& dim : shape) dim.collect_symbols(names);
  return names;
}

}  // namespace

std::set<std::string> symbols_in(const Graph& graph) {
  std::set<std::string> names;
  for (const Value* input : graph.inputs()) names.merge(symbols_of(input->type.shape));
  for (const Node* node : graph.nodes()) {
    names.merge(symbols_used(*node));
    for (const auto& body : node->bodies) names.merge(symbols_in(*body));
  }
  return names;
}

DataSizes::DataSizes(const Graph& graph) : deciders_(graph.size_deciders()) {
  for (const auto& [name, node] : deciders_) symbols_.insert(name);
}

bool DataSizes::managed(const Value& value) const {
  if (needs_host(value.type)) return true;
  if (symbols_.empty() || value.producer == nullptr) return false;
  for (const std::string& name : symbols_of(value.type.shape))
    if (const auto at = deciders_.find(name); at != deciders_.end() && at->second == value.producer) return true;
  return false;
}

bool DataSizes::sized_by_data(const Shape& shape) const {
  if (symbols_.empty()) return false;
  const std::set<std::string> names = symbols_of(shape);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return symbols_.contains(name); });
}

bool DataSizes::measurable(const Region& region) const {
  if (region.nodes.size() != 1 || region.outputs.size() != 1) return false;
  const Node& node = *region.nodes[0];
  return node.op->traits.most != nullptr && region.outputs[0] == node.output() && !needs_host(node.output()->type);
}

bool DataSizes::host_only(const Region& region) const {
  const auto on_host = [](const Value* value) { return value != nullptr && needs_host(value->type); };
  const auto ambiguous = [&](const Node* node) {
    if (!node->op->is_pointwise()) return false;
    const Shape& result = node->output()->type.shape;
    for (const Value* input : node->inputs) {
      const Shape& own = input->type.shape;
      for (size_t axis = 0; axis < own.rank(); ++axis) {
        const Dim& wide = result[result.rank() - own.rank() + axis];
        if (!(own[axis] == wide) && !(own[axis] == Dim(1)) && (sized_by_data(own) || sized_by_data(result)))
          return true;
      }
    }
    return false;
  };
  for (const Node* node : region.nodes) {
    if (std::any_of(node->inputs.begin(), node->inputs.end(), on_host)) return true;
    if (!measurable(region) &&
        std::any_of(node->outputs.begin(), node->outputs.end(), [&](const Value* value) { return managed(*value); }))
      return true;
    if (ambiguous(node)) return true;
  }
  return false;
}

std::vector<int> DataSizes::stages(const std::vector<Layer>& layers) const {
  std::vector<int> stages(layers.size(), 0);
  if (symbols_.empty()) return stages;
  std::unordered_map<const Value*, int> written;
  std::map<std::string, int> decided;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Region& region = layers[i].region;
    int stage = 0;
    for (const Value* input : region.inputs)
      if (const auto at = written.find(input); at != written.end()) stage = std::max(stage, at->second);
    std::set<std::string> needed, own;
    if (layers[i].problem) needed = symbols_in(layers[i].problem->symbolic);
    for (const Node* node : region.nodes) needed.merge(symbols_used(*node));
    for (const Value* input : region.inputs) needed.merge(symbols_of(input->type.shape));
    for (const std::string& name : needed) {
      const auto decider = deciders_.find(name);
      if (decider == deciders_.end()) continue;
      if (std::find(region.nodes.begin(), region.nodes.end(), decider->second) != region.nodes.end()) own.insert(name);
      else if (const auto at = decided.find(name); at != decided.end()) stage = std::max(stage, at->second + 1);
      else
        throw InternalError(
            fmt::format("{} needs the size {} before {} decides it", region.name(), name, decider->second->name));
    }
    stages[i] = stage;
    for (const Value* output : region.outputs) written[output] = stage;
    for (const std::string& name : own) decided[name] = stage;
  }
  return stages;
}

}  // namespace hone
