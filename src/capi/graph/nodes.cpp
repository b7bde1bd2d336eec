// SPDX-License-Identifier: Apache-2.0
//
// The C interface's graphs: nodes and their attributes, from src/edit's structs to C's and back.
#include <algorithm>

#include "capi/build_handles.h"
#include "capi/graph/graph.h"

using hone::capi::ArgumentError;
using hone::capi::counted;
using hone::capi::edited;
using hone::capi::require;
using hone::capi::require_index;
using hone::capi::Told;
namespace edit = hone::edit;

namespace hone::capi {

const edit::Node& node_of(const hone_graph& graph, size_t index) {
  require_index(index, graph.model.graph.nodes.size(), "node");
  return graph.model.graph.nodes[index];
}

edit::Node& node_of(hone_graph& graph, size_t index) {
  require_index(index, graph.model.graph.nodes.size(), "node");
  return graph.model.graph.nodes[index];
}

namespace {

// Types of attributes, and fields of AttributeProto.
constexpr int kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kGraph = 5, kFloats = 6, kInts = 7, kStrings = 8,
              kGraphs = 10;
constexpr uint32_t kNameField = 1, kTensorField = 5, kGraphField = 6, kGraphsField = 11, kKindField = 20,
                   kReferenceField = 21;

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  for (const std::string& text : texts) result.push_back(text.c_str());
  return result;
}

std::vector<std::string> texts_of(const char* const* texts, size_t count, const char* what) {
  if (count > 0) require(texts, what);
  std::vector<std::string> result;
  for (size_t i = 0; i < count; ++i) {
    require(texts[i], what);
    result.emplace_back(texts[i]);
  }
  return result;
}

/// The tensor's message inside of an attribute.
std::string_view tensor_in(std::string_view attribute) {
  std::string_view message;
  edit::read_fields(attribute, [&](uint32_t field, std::string_view payload) {
    if (field == kTensorField) message = payload;
    return true;
  });
  return message;
}

/// The attribute's message without its bodies, which have a place of their own.
std::string without_bodies(std::string_view attribute) {
  edit::Rope out;
  const edit::Rest rest = edit::read_fields(
      attribute, [](uint32_t field, std::string_view) { return field == kGraphField || field == kGraphsField; });
  edit::RestWriter(rest, out).finish();
  return out.text();
}

void tell_value(const hone_graph& graph, const edit::Attribute& from, Told& told, hone_graph_attribute& out) {
  // A message without its bodies: they are not parsed once more for their attribute's sake.
  const std::string_view message = from.bodies.empty() ? from.bytes : std::string_view(told.encoded);
  const onnx::AttributeProto proto = onnx::parse_attribute(std::as_bytes(std::span(message.data(), message.size())));
  if (!proto.reference.empty()) out.reference = told.texts.emplace_back(proto.reference).c_str();
  out.integer = proto.integer;
  out.real = static_cast<float>(proto.real);
  const auto add_text = [&](std::string_view text) {
    told.strings.push_back(told.texts.emplace_back(text).c_str());
    told.lengths.push_back(text.size());
  };
  switch (from.type) {
    case kString: add_text(proto.text); break;
    case kStrings:
      for (const std::string_view text : proto.texts) add_text(text);
      break;
    case kInts: told.integers = proto.integers; break;
    case kFloats: told.reals.assign(proto.reals.begin(), proto.reals.end()); break;
    case kTensor:
      if (const std::string_view tensor = tensor_in(message); proto.tensor) {
        told.tensor.size = sizeof told.tensor;
        tell_weight(graph, edit::read_weight(tensor), told, &told.tensor);
        out.tensor = &told.tensor;
      }
      break;
    default: break;
  }
  out.integers = told.integers.data();
  out.reals = told.reals.data();
  out.texts = told.strings.data();
  out.lengths = told.lengths.data();
  out.count = from.type == kInts     ? told.integers.size()
              : from.type == kFloats ? told.reals.size()
              : from.bodies.empty()  ? told.strings.size()
                                     : from.bodies.size();
}

void add_value(edit::Rope& out, hone_graph& graph, const hone_graph_attribute& given) {
  const auto add_real = [&](uint32_t field, float real) {
    constexpr uint32_t kFixed32 = 5;
    char bytes[sizeof real];
    std::memcpy(bytes, &real, sizeof real);
    out.add_tag(field, kFixed32);
    out.add(std::string_view(bytes, sizeof real));
  };
  const auto add_texts = [&](uint32_t field, size_t count) {
    if (count > 0) require(given.texts, "attribute->texts");
    for (size_t i = 0; i < count; ++i) {
      require(given.texts[i], "attribute->texts");
      out.add_text(field, given.lengths == nullptr ? std::string_view(given.texts[i])
                                                   : std::string_view(given.texts[i], given.lengths[i]));
    }
  };
  switch (given.kind) {
    case kFloat: add_real(2, given.real); break;
    case kInt: out.add_integer(3, given.integer); break;
    case kString: add_texts(4, 1); break;
    case kTensor:
      require(given.tensor, "attribute->tensor");
      out.add_message(kTensorField, edit::encode(weight_of(graph, *given.tensor)));
      break;
    case kFloats:
      if (given.count > 0) require(given.reals, "attribute->reals");
      for (size_t i = 0; i < given.count; ++i) add_real(7, given.reals[i]);
      break;
    case kInts:
      if (given.count > 0) require(given.integers, "attribute->integers");
      for (size_t i = 0; i < given.count; ++i) out.add_integer(8, given.integers[i]);
      break;
    case kStrings: add_texts(9, given.count); break;
    case kGraph:
    case kGraphs: break;
    default:
      throw ArgumentError(fmt::format("attribute->kind is {}", given.kind),
                          "1 to 8 and 10 are made; another kind is given encoded");
  }
}

/// The message under another name.
std::string renamed(std::string_view message, const std::string& name) {
  const edit::Rest rest =
      edit::read_fields(message, [](uint32_t field, std::string_view) { return field == kNameField; });
  edit::Rope out;
  out.add_text(kNameField, name);
  edit::RestWriter(rest, out).finish();
  return out.text();
}

edit::Attribute taken_encoded(hone_graph& graph, const hone_graph_attribute& given) {
  edit::Attribute made = edit::read_attribute(graph.view(given.encoded, given.encoded_size, given.owner));
  if (made.name != given.name) {
    made.bytes = graph.model.keep(renamed(made.bytes, given.name));
    made.name = given.name;
  }
  return made;
}

}  // namespace

void tell_attribute(const hone_graph& graph, const edit::Attribute& from, Told& told, hone_graph_attribute* out) {
  told = {};
  if (!from.bodies.empty()) told.encoded = without_bodies(from.bytes);
  const std::string_view message = from.bodies.empty() ? from.bytes : std::string_view(told.encoded);
  hone_graph_attribute filled{.name = from.name.c_str(),
                              .kind = static_cast<int>(from.type),
                              .encoded = message.data(),
                              .encoded_size = message.size(),
                              .owner = from.bodies.empty() ? &graph : nullptr};
  if (!from.bytes.empty()) tell_value(graph, from, told, filled);
  fill(out, "attribute", filled);
}

edit::Attribute attribute_of(hone_graph& graph, const hone_graph_attribute& given) {
  edit::Attribute made;
  if (given.encoded != nullptr) {
    made = taken_encoded(graph, given);
  } else {
    edit::Rope out;
    out.add_text(kNameField, given.name);
    if (given.reference == nullptr) add_value(out, graph, given);
    out.add_integer(kKindField, given.kind);
    if (given.reference != nullptr) out.add_text(kReferenceField, given.reference);
    made = {given.name, given.kind, graph.model.keep(out.text()), {}};
  }
  if (given.bodies == nullptr) return made;
  if (made.type != kGraph && made.type != kGraphs)
    throw ArgumentError(fmt::format("attribute->bodies is given, attribute->kind is {}", made.type),
                        "5: GRAPH; 10: GRAPHS");
  made.bodies.clear();
  for (size_t i = 0; i < given.count; ++i) {
    require(given.bodies[i], "attribute->bodies");
    graph.adopt(*given.bodies[i]);
    made.bodies.push_back(std::make_shared<edit::Graph>(edit::deep_copy(given.bodies[i]->model.graph)));
  }
  return made;
}

}  // namespace hone::capi

using hone::capi::node_of;

size_t hone_graph_nodes(const hone_graph* graph) {
  return counted(graph, [](const hone_graph& of) { return of.model.graph.nodes.size(); });
}

hone_status hone_graph_node_at(const hone_graph* graph, size_t index, hone_graph_node* node) {
  return edited([&] {
    require(graph, "graph");
    require(node, "node");
    const edit::Node& found = node_of(*graph, index);
    Told& told = graph->node;
    told = {};
    told.inputs = hone::capi::pointers(found.inputs);
    told.outputs = hone::capi::pointers(found.outputs);
    for (const edit::Kept& kept : found.rest) told.encoded += kept.whole;
    hone::capi::fill(node, "node",
                     hone_graph_node{.op = found.op_type.c_str(),
                                     .name = found.name.c_str(),
                                     .domain = found.domain.c_str(),
                                     .inputs = told.inputs.data(),
                                     .input_count = told.inputs.size(),
                                     .outputs = told.outputs.data(),
                                     .output_count = told.outputs.size(),
                                     .attribute_count = found.attributes.size(),
                                     .rest = told.encoded.data(),
                                     .rest_size = told.encoded.size()});
  });
}

hone_status hone_graph_put_node(hone_graph* graph, size_t index, const hone_graph_node* node) {
  return edited([&] {
    require(graph, "graph");
    const auto given = hone::capi::taken(node, "node");
    require(given.op, "node->op");
    std::vector<edit::Node>& nodes = graph->model.graph.nodes;
    require_index(index, nodes.size() + 1, "place for a node");
    edit::Node made;
    made.op_type = given.op;
    made.name = given.name == nullptr ? "" : given.name;
    made.domain = given.domain == nullptr ? "" : given.domain;
    made.inputs = hone::capi::texts_of(given.inputs, given.input_count, "node->inputs");
    made.outputs = hone::capi::texts_of(given.outputs, given.output_count, "node->outputs");
    if (given.rest_size > 0) {
      require(given.rest, "node->rest");
      made.rest = edit::read_fields(graph->view(given.rest, given.rest_size, nullptr),
                                    [](uint32_t, std::string_view) { return false; });
    }
    if (index == nodes.size()) nodes.push_back(std::move(made));
    else nodes[index] = std::move(made);
  });
}

hone_status hone_graph_remove_node(hone_graph* graph, size_t index) {
  return edited([&] {
    require(graph, "graph");
    node_of(*graph, index);
    graph->model.graph.nodes.erase(graph->model.graph.nodes.begin() + static_cast<std::ptrdiff_t>(index));
  });
}

hone_status hone_graph_attribute_at(const hone_graph* graph, size_t node, size_t index,
                                    hone_graph_attribute* attribute) {
  return edited([&] {
    require(graph, "graph");
    require(attribute, "attribute");
    const edit::Node& of = node_of(*graph, node);
    require_index(index, of.attributes.size(), "attribute");
    hone::capi::tell_attribute(*graph, of.attributes[index], graph->attribute, attribute);
  });
}

hone_status hone_graph_set_attribute(hone_graph* graph, size_t node, const hone_graph_attribute* attribute) {
  return edited([&] {
    require(graph, "graph");
    const auto given = hone::capi::taken(attribute, "attribute");
    require(given.name, "attribute->name");
    node_of(*graph, node);
    edit::Attribute made = hone::capi::attribute_of(*graph, given);
    std::vector<edit::Attribute>& all = node_of(*graph, node).attributes;
    const auto at = std::ranges::find(all, made.name, &edit::Attribute::name);
    if (at == all.end()) all.push_back(std::move(made));
    else *at = std::move(made);
  });
}

hone_status hone_graph_remove_attribute(hone_graph* graph, size_t node, const char* name) {
  return edited([&] {
    require(graph, "graph");
    require(name, "name");
    edit::Node& of = node_of(*graph, node);
    if (std::erase_if(of.attributes, [&](const edit::Attribute& each) { return each.name == name; }) == 0)
      throw hone::Error(fmt::format("node {} ({}) has no attribute {}", node, of.op_type, name),
                        "hone_graph_attribute_at() lists those that it has");
  });
}
