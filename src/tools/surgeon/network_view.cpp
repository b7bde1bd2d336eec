// SPDX-License-Identifier: Apache-2.0
#include "tools/surgeon/network_view.h"

#include <map>

#include "edit/file.h"
#include "edit/names.h"
#include "edit/rope.h"
#include "edit/values.h"
#include "ir/op.h"
#include "onnx/importer.h"
#include "onnx/proto.h"

namespace hone {
namespace {

constexpr const char* kDomain = "hone";
constexpr int64_t kGraphAttribute = 5, kOpset = 21, kIrVersion = 10,
                  kLargest = 1024;  // bytes of a constant that is shown

edit::ValueType type_of(const TensorType& type) {
  if (is_container(type.dtype)) return {0, {}, false};
  edit::ValueType found{onnx::onnx_type_of(type.dtype), {}, true};
  if (!type.ranked) return found;
  found.sizes.emplace();
  for (const Dim& dim : type.shape) found.sizes->push_back({dim.constant(), dim.is_constant() ? "" : dim.text()});
  return found;
}

class Writer {
 public:
  explicit Writer(edit::Model& model) : model_(model) {}

  edit::Graph graph_of(const Graph& graph) {
    edit::Graph made;
    made.name = graph.name.empty() ? "network" : graph.name;
    for (const Value* input : graph.inputs()) made.inputs.push_back(declared(input));
    for (const Node* node : graph.nodes()) {
      made.nodes.push_back(node_of(*node, made));
      for (const Value* output : node->outputs) made.values.push_back(declared(output));
    }
    for (const Value* output : graph.outputs()) {
      know(output, made);
      made.outputs.push_back(declared(output));
    }
    return made;
  }

 private:
  edit::Value declared(const Value* value) {
    return edit::with_type(model_, {name_of(value), {}}, type_of(value->type));
  }

  const std::string& name_of(const Value* value) {
    const auto [at, fresh] = names_.emplace(value, "");
    if (fresh) at->second = edit::fresh_name(taken_, value->name.empty() ? "value" : value->name);
    return at->second;
  }

  /// A constant becomes a weight of the graph that reads it.
  void know(const Value* value, edit::Graph& made) {
    if (!value->is_constant() || names_.contains(value)) return;
    const Tensor& tensor = *value->constant;
    const auto bytes = static_cast<int64_t>(tensor.bytes().size());
    if (is_container(tensor.dtype())) return;
    made.weights.push_back(
        bytes <= kLargest ? edit::make_weight(model_, name_of(value), tensor)
                          : edit::make_weight(model_, name_of(value), onnx::onnx_type_of(tensor.dtype()),
                                              std::vector<int64_t>(tensor.dims().begin(), tensor.dims().end()), ""));
  }

  edit::Node node_of(const Node& node, edit::Graph& made) {
    edit::Node shown;
    shown.name = node.name;
    shown.op_type = node.op_name();
    shown.domain = kDomain;
    for (const Value* input : node.inputs) {
      if (input != nullptr) know(input, made);
      shown.inputs.push_back(input == nullptr ? "" : name_of(input));
    }
    for (const Value* output : node.outputs) shown.outputs.push_back(name_of(output));
    for (const auto& [name, value] : node.attrs) shown.attributes.push_back(attribute_of(name, value));
    if (!node.origin.empty()) shown.attributes.push_back(edit::make_attribute(model_, "origin", node.origin));
    for (size_t i = 0; i < node.bodies.size(); ++i) {
      const std::string name = "body_" + std::to_string(i);
      edit::Rope bytes;
      bytes.add_text(1, name);
      bytes.add_integer(20, kGraphAttribute);
      shown.attributes.push_back({name,
                                  kGraphAttribute,
                                  model_.keep(bytes.text()),
                                  {std::make_shared<edit::Graph>(graph_of(*node.bodies[i]))}});
    }
    return shown;
  }

  edit::Attribute attribute_of(const std::string& name, const AttrValue& value) {
    const auto make = [&](const auto& plain) -> edit::Attribute {
      if constexpr (std::is_same_v<std::decay_t<decltype(plain)>, Tensor>)
        return edit::make_attribute(model_, name, print_value(plain));
      else return edit::make_attribute(model_, name, plain);
    };
    return std::visit(make, value);
  }

  edit::Model& model_;
  std::map<const Value*, std::string> names_;
  std::unordered_set<std::string> taken_;
};

}  // namespace

void save_network_view(const Blob& model, const std::string& folder, const std::string& path, const Logger& log) {
  edit::Model view = edit::new_model("network", kOpset, kIrVersion);
  view.opsets.push_back({kDomain, 1, {}});
  view.graph = Writer(view).graph_of(import_onnx_bytes(model, log, folder).graph);
  edit::save(view, path, {});
}

}  // namespace hone
