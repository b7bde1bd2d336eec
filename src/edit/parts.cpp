// SPDX-License-Identifier: Apache-2.0
#include "edit/parts.h"

#include <algorithm>

namespace hone::edit {
namespace {

// Fields of FunctionProto.
constexpr uint32_t kRequired = 6, kOpsets = 9, kDefaults = 11, kValues = 12;

void put_in_order(Rest& rest) { std::ranges::stable_sort(rest, {}, &Kept::number); }

void keep_field(Model& model, Rest& rest, uint32_t number, Rope message) {
  Rope whole;
  whole.add_message(number, std::move(message));
  rest.push_back({number, model.keep(whole.text())});
}

/// Nothing where the field is of another kind than a text or a message, as in damaged models.
std::optional<std::string_view> payload_of(const Kept& kept) {
  protozero::pbf_reader message(kept.whole.data(), kept.whole.size());
  if (!message.next() || message.wire_type() != protozero::pbf_wire_type::length_delimited) return std::nullopt;
  const protozero::data_view view = message.get_view();
  return std::string_view(view.data(), view.size());
}

Node constant_of(Model& model, const Weight& weight) {
  Rope attribute;
  attribute.add_text(1, "value");
  attribute.add_message(5, encode(weight));
  attribute.add_integer(20, 4);
  Node node;
  node.op_type = "Constant";
  node.outputs = {weight.name};
  node.attributes = {{"value", 4, model.keep(attribute.text()), {}}};
  return node;
}

}  // namespace

Node deep_copy(const Node& node) {
  Node copy = node;
  for (Attribute& attribute : copy.attributes)
    for (std::shared_ptr<Graph>& body : attribute.bodies) body = std::make_shared<Graph>(deep_copy(*body));
  return copy;
}

Graph deep_copy(const Graph& graph) {
  Graph copy = graph;
  for (Node& node : copy.nodes) node = deep_copy(node);
  return copy;
}

namespace {

FunctionParts take_apart(const Function& function) {
  FunctionParts parts;
  parts.domain = function.domain;
  parts.overload = function.overload;
  Graph& graph = parts.model.graph;
  graph.name = function.name;
  for (const std::string& name : function.inputs) graph.inputs.push_back({name, {}});
  for (const std::string& name : function.outputs) graph.outputs.push_back({name, {}});
  for (const Node& node : function.nodes) graph.nodes.push_back(deep_copy(node));
  for (const Kept& kept : function.rest) {
    const std::optional<std::string_view> found = payload_of(kept);
    const std::string_view payload = found.value_or(std::string_view());
    if (!found) {
      parts.model.rest.push_back(kept);
    } else if (kept.number == kRequired) {
      parts.parameters.push_back({std::string(payload), 0, {}, {}});
    } else if (kept.number == kDefaults) {
      parts.parameters.push_back(read_attribute(payload));
    } else if (kept.number == kValues) {
      graph.values.push_back(read_value(payload));
    } else if (kept.number == kOpsets) {
      parts.model.opsets.push_back(read_opset(payload));
    } else {
      parts.model.rest.push_back(kept);
    }
  }
  return parts;
}

}  // namespace

FunctionParts parts_of(const Function& function) {
  try {
    return take_apart(function);
  } catch (const protozero::exception& error) {
    throw Error(fmt::format("the function {} is damaged: {}", function.name, error.what()),
                "read the model from a whole file");
  }
}

Function function_of(Model& into, const FunctionParts& parts) {
  Function function;
  const Graph& graph = parts.model.graph;
  function.name = graph.name;
  function.domain = parts.domain;
  function.overload = parts.overload;
  for (const Value& input : graph.inputs) function.inputs.push_back(input.name);
  for (const Value& output : graph.outputs) function.outputs.push_back(output.name);
  for (const Weight& weight : graph.weights) function.nodes.push_back(constant_of(into, weight));
  for (const Node& node : graph.nodes) function.nodes.push_back(deep_copy(node));
  function.rest = parts.model.rest;
  for (const Attribute& parameter : parts.parameters) {
    Rope message;
    message.add(parameter.type == 0 ? std::string_view(parameter.name) : parameter.bytes);
    keep_field(into, function.rest, parameter.type == 0 ? kRequired : kDefaults, std::move(message));
  }
  for (const Opset& opset : parts.model.opsets) keep_field(into, function.rest, kOpsets, encode(opset));
  for (const Value& value : graph.values) keep_field(into, function.rest, kValues, encode(value));
  // Types of inputs and outputs have no place of their own in a function.
  for (const std::vector<Value>* list : {&graph.inputs, &graph.outputs})
    for (const Value& value : *list)
      if (type_of(value).element != 0 &&
          std::ranges::find(graph.values, value.name, &Value::name) == graph.values.end())
        keep_field(into, function.rest, kValues, encode(value));
  put_in_order(function.rest);
  return function;
}

std::string_view text_in(const Rest& rest, uint32_t number) {
  std::string_view text;
  for (const Kept& kept : rest)
    if (kept.number == number) text = payload_of(kept).value_or(text);
  return text;
}

void set_text(Model& model, Rest& rest, uint32_t number, std::string_view text) {
  std::erase_if(rest, [&](const Kept& kept) { return kept.number == number; });
  if (text.empty()) return;
  Rope message;
  message.add(text);
  keep_field(model, rest, number, std::move(message));
  put_in_order(rest);
}

}  // namespace hone::edit
