// SPDX-License-Identifier: Apache-2.0
//
// From a model to bytes, fields in order of their numbers as protobuf's own libraries write them.
#include "edit/model.h"

namespace hone::edit {
namespace {

std::string_view name_in(std::string_view message, uint32_t number) {
  std::string_view name;
  read_fields(message, [&](uint32_t field, std::string_view payload) {
    if (field == number) name = payload;
    return true;
  });
  return name;
}

/// The message with a name of its own.
Rope renamed(std::string_view message, uint32_t number, const std::string& name) {
  Rope out;
  if (name_in(message, number) == name) {
    out.add(message);
    return out;
  }
  const Rest rest = read_fields(message, [&](uint32_t field, std::string_view) { return field == number; });
  RestWriter others(rest, out);
  others.up_to(number);
  out.add_text(number, name);
  others.finish();
  return out;
}

Rope encode(const Attribute& attribute) {
  if (attribute.bodies.empty()) {
    Rope out;
    out.add(attribute.bytes);
    return out;
  }
  const Rest rest =
      read_fields(attribute.bytes, [](uint32_t field, std::string_view) { return field == 6 || field == 11; });
  Rope out;
  RestWriter others(rest, out);
  const uint32_t field = attribute.type == 10 ? 11 : 6;
  others.up_to(field);
  for (const auto& body : attribute.bodies) out.add_message(field, edit::encode(*body));
  others.finish();
  return out;
}

void add_named(Rope& out, RestWriter& others, uint32_t field, const std::string& text) {
  others.up_to(field);
  if (!text.empty()) out.add_text(field, text);
}

void add_nodes(Rope& out, RestWriter& others, uint32_t field, const std::vector<Node>& nodes) {
  others.up_to(field);
  for (const Node& node : nodes) out.add_message(field, encode(node));
}

void add_texts(Rope& out, RestWriter& others, uint32_t field, const std::vector<std::string>& texts) {
  others.up_to(field);
  for (const std::string& text : texts) out.add_text(field, text);
}

void add_values(Rope& out, RestWriter& others, uint32_t field, const std::vector<Value>& values) {
  others.up_to(field);
  for (const Value& value : values) out.add_message(field, encode(value));
}

Rope encode(const Function& function) {
  Rope out;
  RestWriter others(function.rest, out);
  add_named(out, others, 1, function.name);
  add_texts(out, others, 4, function.inputs);
  add_texts(out, others, 5, function.outputs);
  add_nodes(out, others, 7, function.nodes);
  add_named(out, others, 10, function.domain);
  add_named(out, others, 13, function.overload);
  others.finish();
  return out;
}

}  // namespace

Rope encode(const Weight& weight) { return renamed(weight.bytes, 8, weight.name); }
Rope encode(const Value& value) { return renamed(value.bytes, 1, value.name); }

Rope encode(const Node& node) {
  Rope out;
  RestWriter others(node.rest, out);
  add_texts(out, others, 1, node.inputs);
  add_texts(out, others, 2, node.outputs);
  add_named(out, others, 3, node.name);
  add_named(out, others, 4, node.op_type);
  others.up_to(5);
  for (const Attribute& attribute : node.attributes) out.add_message(5, encode(attribute));
  add_named(out, others, 7, node.domain);
  others.finish();
  return out;
}

Rope encode(const Opset& opset) {
  Rope out;
  RestWriter others(opset.rest, out);
  add_named(out, others, 1, opset.domain);
  others.up_to(2);
  if (opset.version != 0) out.add_integer(2, opset.version);  // a file may say none, but not 0
  others.finish();
  return out;
}

Rope encode(const Graph& graph) {
  Rope out;
  RestWriter others(graph.rest, out);
  add_nodes(out, others, 1, graph.nodes);
  add_named(out, others, 2, graph.name);
  others.up_to(5);
  for (const Weight& weight : graph.weights) out.add_message(5, encode(weight));
  add_values(out, others, 11, graph.inputs);
  add_values(out, others, 12, graph.outputs);
  add_values(out, others, 13, graph.values);
  others.up_to(15);
  for (const Value& sparse : graph.sparse) out.add_message(15, sparse.bytes);
  others.finish();
  return out;
}

Rope encode(const Model& model) {
  Rope out;
  RestWriter others(model.rest, out);
  others.up_to(1);
  if (model.ir_version != 0) out.add_integer(1, model.ir_version);
  others.up_to(7);
  out.add_message(7, encode(model.graph));
  others.up_to(8);
  for (const Opset& opset : model.opsets) out.add_message(8, encode(opset));
  others.up_to(25);
  for (const Function& function : model.functions) out.add_message(25, encode(function));
  others.finish();
  return out;
}

}  // namespace hone::edit
