// SPDX-License-Identifier: Apache-2.0
#include "quantize/model_edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace hone {

void ModelEdits::add(const ModelEdits& later) {
  for (const auto& [name, tensor] : later.constants) constants.insert_or_assign(name, tensor);
  for (const auto& [name, tensor] : later.biases) biases.insert_or_assign(name, tensor);
}

void apply(const ModelEdits& edits, Graph& graph) {
  for (const Node* node : graph.nodes())
    for (Value* input : node->inputs) {
      if (input == nullptr || !input->is_constant()) continue;
      const auto found = edits.constants.find(input->name);
      if (found != edits.constants.end()) input->constant = found->second;
    }
}

void apply(const ModelEdits& edits, onnx::ModelFile& file) {
  std::set<std::string_view> missing;
  for (const auto& [name, tensor] : edits.constants) missing.insert(name);
  for (onnx::NamedMessage& initializer : file.initializers)
    if (const auto found = edits.constants.find(initializer.name); found != edits.constants.end()) {
      initializer.bytes = file.keep(onnx::encode_tensor(initializer.name, found->second));
      missing.erase(found->first);
    }
  std::erase_if(file.nodes, [&](const onnx::FileNode& node) {
    if (node.outputs.size() != 1) return false;
    const auto found = edits.constants.find(node.outputs.front());
    if (found == edits.constants.end()) return false;
    file.add_initializer(found->first, found->second);
    missing.erase(found->first);
    return true;
  });
  if (!missing.empty())
    throw Error(
        fmt::format("constant {} is inside of a function of the model and cannot be changed", *missing.begin()),
        "leave --equalize, --smooth, --bias-correction and --awq lite out, or export the model without functions");
  for (onnx::FileNode& node : file.nodes) {
    if (node.outputs.empty()) continue;
    const auto bias = edits.biases.find(node.outputs.front());
    if (bias == edits.biases.end()) continue;
    const std::string name = file.unique_tensor_name(bias->first + "_bias");
    file.add_initializer(name, bias->second);
    node.inputs.resize(std::max<size_t>(node.inputs.size(), 3));
    node.inputs[2] = name;
  }
}

}  // namespace hone
