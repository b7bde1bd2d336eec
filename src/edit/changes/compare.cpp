// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/compare.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "edit/names.h"

namespace hone::edit {
namespace {

std::map<std::string, const Node*> nodes_by_key(const std::vector<Node>& list) {
  std::map<std::string, const Node*> nodes;
  for (size_t i = 0; i < list.size(); ++i) {
    const Node& node = list[i];
    std::string key = node.name.empty() ? (node.outputs.empty() ? label_of(node, i) : node.outputs[0]) : node.name;
    while (!nodes.emplace(key, &node).second) key += "'";
  }
  return nodes;
}

template <typename Entry, typename Key>
std::map<std::string, const Entry*> by_key(const std::vector<Entry>& list, const Key& key_of) {
  std::map<std::string, const Entry*> entries;
  for (const Entry& each : list) {
    std::string key = key_of(each);
    while (!entries.emplace(key, &each).second) key += "'";  // in damaged models two have one name
  }
  return entries;
}

std::string title(const std::string& key, const Node& node) { return fmt::format("{} ({})", key, node.op_type); }

std::string node_change(const Node& before, const Node& after) {
  std::vector<std::string> parts;
  if (before.op_type != after.op_type || before.domain != after.domain)
    parts.push_back(fmt::format("op {} -> {}", before.op_type, after.op_type));
  const auto list = [](const std::vector<std::string>& names) { return "[" + join(names, ", ") + "]"; };
  if (before.inputs != after.inputs)
    parts.push_back(fmt::format("inputs {} -> {}", list(before.inputs), list(after.inputs)));
  if (before.outputs != after.outputs)
    parts.push_back(fmt::format("outputs {} -> {}", list(before.outputs), list(after.outputs)));
  for (const Attribute& attribute : after.attributes) {
    const Attribute* old = before.attribute(attribute.name);
    if (old == nullptr) {
      parts.push_back(fmt::format("{} = {} added", attribute.name, attribute_text(attribute)));
    } else if (attribute.bodies.empty()
                   ? old->bytes != attribute.bytes
                   : old->bodies.size() != attribute.bodies.size() ||
                         !std::ranges::equal(old->bodies, attribute.bodies, [](const auto& a, const auto& b) {
                           return encode(*a).text() == encode(*b).text();
                         })) {
      parts.push_back(fmt::format("{} {} -> {}", attribute.name, attribute_text(*old), attribute_text(attribute)));
    }
  }
  for (const Attribute& attribute : before.attributes)
    if (after.attribute(attribute.name) == nullptr) parts.push_back(fmt::format("{} removed", attribute.name));
  return join(parts, "; ");
}

void compare_values(std::string_view what, const std::vector<Value>& before, const std::vector<Value>& after,
                    ModelDifference& out) {
  std::map<std::string, ValueType> old, now;
  for (const Value& value : before) old.emplace(value.name, type_of(value));
  for (const Value& value : after) now.emplace(value.name, type_of(value));
  const auto text = [](const ValueType& type) {
    return fmt::format("{} {}", numpy_name(type.element), sizes_text(type));
  };
  for (const auto& [name, type] : old) {
    const auto at = now.find(name);
    if (at == now.end()) out.others.push_back(fmt::format("{} {} removed", what, name));
    else if (!(at->second == type))
      out.others.push_back(fmt::format("{} {}: {} -> {}", what, name, text(type), text(at->second)));
  }
  for (const auto& [name, type] : now)
    if (!old.contains(name)) out.others.push_back(fmt::format("{} {} added: {}", what, name, text(type)));
}

/// Whether the elements are the same; nothing where they cannot be read.
std::optional<bool> same_elements(const Model& before, const Weight& a, const Model& after, const Weight& b) {
  if (a.bytes == b.bytes && (!a.file || before.directory == after.directory)) return true;
  try {
    const Tensor x = tensor_of(before, a), y = tensor_of(after, b);
    if (x.dtype() == DType::string) return x.strings() == y.strings();
    return x.blob().text() == y.blob().text();
  } catch (const Error&) {
    return std::nullopt;
  }
}

void compare_weights(const Model& before, const Model& after, ModelDifference& out) {
  const auto name_of = [](const Weight& weight) { return weight.name; };
  const auto old = by_key(before.graph.weights, name_of), now = by_key(after.graph.weights, name_of);
  for (const auto& [name, weight] : old) {
    const auto at = now.find(name);
    if (at == now.end()) {
      out.others.push_back(fmt::format("weight {} removed", name));
    } else if (weight->dims != at->second->dims || weight->type != at->second->type) {
      out.others.push_back(fmt::format("weight {}: {} [{}] -> {} [{}]", name, numpy_name(weight->type),
                                       join_dims(weight->dims, ","), numpy_name(at->second->type),
                                       join_dims(at->second->dims, ",")));
    } else if (const std::optional<bool> same = same_elements(before, *weight, after, *at->second);
               !same.value_or(false)) {
      out.others.push_back(fmt::format("weight {}: {}", name, same ? "other values" : "its values cannot be read"));
    }
  }
  for (const auto& [name, weight] : now)
    if (!old.contains(name)) out.others.push_back(fmt::format("weight {} added", name));
}

/// Nodes of a list; `title` says of one what it is called, and where.
template <typename Title>
void compare_nodes(const std::vector<Node>& before, const std::vector<Node>& after, const Title& title_of,
                   ModelDifference& out) {
  const auto old = nodes_by_key(before), now = nodes_by_key(after);
  for (const auto& [key, node] : old) {
    const auto at = now.find(key);
    if (at == now.end()) out.removed.push_back(title_of(key, *node));
    else if (const std::string how = node_change(*node, *at->second); !how.empty())
      out.changed.emplace_back(title_of(key, *at->second), how);
  }
  for (const auto& [key, node] : now)
    if (!old.contains(key)) out.added.push_back(title_of(key, *node));
}

std::string function_key(const Function& function) {
  std::string key = function.domain.empty() ? function.name : function.domain + "::" + function.name;
  return function.overload.empty() ? key : key + ":" + function.overload;
}

void compare_functions(const Model& before, const Model& after, ModelDifference& out) {
  const auto old = by_key(before.functions, function_key), now = by_key(after.functions, function_key);
  const auto list = [](const std::vector<std::string>& names) { return "[" + join(names, ", ") + "]"; };
  for (const auto& [key, function] : old) {
    const auto at = now.find(key);
    if (at == now.end()) {
      out.others.push_back(fmt::format("function {} removed", key));
      continue;
    }
    const Function& other = *at->second;
    if (function->inputs != other.inputs)
      out.others.push_back(
          fmt::format("function {}: inputs {} -> {}", key, list(function->inputs), list(other.inputs)));
    if (function->outputs != other.outputs)
      out.others.push_back(
          fmt::format("function {}: outputs {} -> {}", key, list(function->outputs), list(other.outputs)));
    const bool same_rest = std::ranges::equal(function->rest, other.rest, {}, &Kept::whole, &Kept::whole);
    if (!same_rest)
      out.others.push_back(fmt::format("function {}: its attributes, operator sets or documentation differ", key));
    const auto title_of = [&key = key](const std::string& node_key, const Node& node) {
      return fmt::format("{} in function {}", title(node_key, node), key);
    };
    compare_nodes(function->nodes, other.nodes, title_of, out);
  }
  for (const auto& [key, function] : now)
    if (!old.contains(key)) out.others.push_back(fmt::format("function {} added", key));
}

std::map<std::string, int64_t> opsets_of(const Model& model) {
  std::map<std::string, int64_t> opsets;
  for (const Opset& opset : model.opsets) opsets[opset.domain.empty() ? "ai.onnx" : opset.domain] = opset.version;
  return opsets;
}

void compare_opsets(const Model& before, const Model& after, ModelDifference& out) {
  const std::map<std::string, int64_t> old = opsets_of(before), now = opsets_of(after);
  for (const auto& [domain, version] : now) {
    const auto at = old.find(domain);
    if (at == old.end()) out.others.push_back(fmt::format("operator set {} {} added", domain, version));
    else if (at->second != version)
      out.others.push_back(fmt::format("operator set {}: {} -> {}", domain, at->second, version));
  }
  for (const auto& [domain, version] : old)
    if (!now.contains(domain)) out.others.push_back(fmt::format("operator set {} removed", domain));
}

}  // namespace

ModelDifference compare(const Model& before, const Model& after) {
  ModelDifference out;
  compare_nodes(before.graph.nodes, after.graph.nodes, title, out);
  compare_values("input", before.graph.inputs, after.graph.inputs, out);
  compare_values("output", before.graph.outputs, after.graph.outputs, out);
  compare_weights(before, after, out);
  compare_opsets(before, after, out);
  compare_functions(before, after, out);
  return out;
}

}  // namespace hone::edit
