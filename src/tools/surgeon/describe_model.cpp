// SPDX-License-Identifier: Apache-2.0
#include "tools/surgeon/describe_model.h"

#include <map>
#include <set>

#include "base/text.h"
#include "base/utf8.h"
#include "edit/infer.h"
#include "edit/names.h"
#include "ir/op.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

std::string indented(const std::string& text, size_t by) {
  return std::string(by, ' ') + [&] {
    std::string out;
    for (const char c : text) {
      out += c;
      if (c == '\n') out += std::string(by, ' ');
    }
    return out;
  }();
}

/// What the model says of its tensors, without inference.
class Tensors {
 public:
  explicit Tensors(const edit::Graph& graph) {
    for (const std::vector<edit::Value>* values : {&graph.values, &graph.outputs, &graph.inputs})
      for (const edit::Value& value : *values) types_.insert_or_assign(value.name, edit::type_of(value));
    for (const edit::Weight& weight : graph.weights) weights_.emplace(weight.name, &weight);
  }
  std::string text(const std::string& name) const {
    if (name.empty()) return "<empty>";
    if (const auto at = weights_.find(name); at != weights_.end())
      return fmt::format("Initializer | {} [dtype={}, shape={}]", name, edit::numpy_name(at->second->type),
                         edit::sizes_text(edit::type_of(*at->second)));
    return plain(name);
  }
  std::string plain(const std::string& name) const {
    const auto at = types_.find(name);
    if (at == types_.end() || (at->second.element == 0 && !at->second.sizes)) return name;
    std::vector<std::string> parts;
    if (at->second.element != 0) parts.push_back("dtype=" + edit::numpy_name(at->second.element));
    if (at->second.sizes) parts.push_back("shape=" + edit::sizes_text(at->second));
    return fmt::format("{} [{}]", name, join(parts, ", "));
  }
  std::string weight_text(const edit::Weight& weight) const {
    return fmt::format("{} [dtype={}, shape={}]", weight.name, edit::numpy_name(weight.type),
                       edit::sizes_text(edit::type_of(weight)));
  }

 private:
  std::map<std::string, edit::ValueType> types_;
  std::map<std::string, const edit::Weight*> weights_;
};

std::string braces(const std::vector<std::string>& items) { return "{" + join(items, ",\n ") + "}"; }

std::string values_list(const Tensors& tensors, const std::vector<edit::Value>& values) {
  std::vector<std::string> items;
  for (const edit::Value& value : values) items.push_back(tensors.plain(value.name));
  return braces(items);
}

/// Names of the nodes that make what the node reads, and that read what it makes.
std::pair<std::set<std::string>, std::set<std::string>> around(const edit::Graph& graph, const edit::Index& index,
                                                               size_t at) {
  std::set<std::string> before, after;
  for (const std::string& name : edit::reads_of(graph.nodes[at]))
    if (const auto producer = index.producer.find(name); producer != index.producer.end())
      before.insert(edit::label_of(graph.nodes[producer->second], producer->second));
  for (const std::string& name : graph.nodes[at].outputs)
    if (const auto readers = index.consumers.find(name); readers != index.consumers.end())
      for (const size_t reader : readers->second) after.insert(edit::label_of(graph.nodes[reader], reader));
  return {before, after};
}

std::string node_text(const edit::Graph& graph, const edit::Index* index, const Tensors& tensors, size_t at,
                      const ModelView& view) {
  const edit::Node& node = graph.nodes[at];
  std::string text = fmt::format("Node {:<4} | {} [Op: {}{}{}]", at, node.name, node.domain.empty() ? "" : node.domain,
                                 node.domain.empty() ? "" : ".", node.op_type);
  std::vector<std::string> inputs, outputs;
  for (const std::string& name : node.inputs) inputs.push_back(tensors.text(name));
  for (const std::string& name : node.outputs) outputs.push_back(tensors.text(name));
  text += "\n" + indented(braces(inputs), 4) + "\n     -> " + indented(braces(outputs), 8).substr(8);
  if (view.attrs && !node.attributes.empty()) {
    text += "\n    ---- Attributes ----";
    for (const edit::Attribute& attribute : node.attributes)
      text += fmt::format("\n    {}.{} = {}", node.name.empty() ? "self" : node.name, attribute.name,
                          valid_utf8(edit::attribute_text(attribute)));
  }
  if (index != nullptr) {
    const auto [before, after] = around(graph, *index, at);
    text += fmt::format("\n    ---- Neighbours ----\n    Father nodes: [{}]\n    Son nodes: [{}]", join(before, ", "),
                        join(after, ", "));
  }
  for (const edit::Attribute& attribute : node.attributes)
    for (const auto& body : attribute.bodies) {
      const Tensors inner(*body);
      const edit::Index inner_index(*body);
      text += fmt::format("\n    ---- Subgraph: {} ----", attribute.name);
      for (size_t i = 0; i < body->nodes.size(); ++i)
        text += "\n" + indented(node_text(*body, view.neighbours ? &inner_index : nullptr, inner, i, view), 4);
    }
  return text + "\n";
}

/// Every tensor with its producer and its readers, and what stands before and behind them.
std::string tensors_text(const edit::Graph& graph, const edit::Index& index) {
  const std::unordered_set<std::string> unordered = edit::tensor_names(graph);
  std::string text;
  for (const std::string& name : std::set<std::string>(unordered.begin(), unordered.end())) {
    std::vector<std::string> readers;
    std::set<std::string> fathers, sons;
    std::string producer = "none";
    if (const auto at = index.producer.find(name); at != index.producer.end()) {
      producer = edit::label_of(graph.nodes[at->second], at->second);
      for (const std::string& read : edit::reads_of(graph.nodes[at->second])) fathers.insert(read);
    }
    if (const auto at = index.consumers.find(name); at != index.consumers.end())
      for (const size_t reader : at->second) {
        readers.push_back(edit::label_of(graph.nodes[reader], reader));
        for (const std::string& made : graph.nodes[reader].outputs) sons.insert(made);
      }
    text += fmt::format(
        "\nTensor {}\n    Producer: {}\n    Consumers: [{}]\n    Father tensors: [{}]\n    Son tensors: [{}]", name,
        producer, join(readers, ", "), join(fathers, ", "), join(sons, ", "));
  }
  return text;
}

std::string text_field(const edit::Rest& rest, uint32_t number) {
  for (const auto& [field, whole] : rest)
    if (field == number) {
      std::string text;
      edit::read_fields(whole, [&](uint32_t, std::string_view payload) {
        text = payload;
        return true;
      });
      return valid_utf8(text);
    }
  return {};
}

std::vector<std::pair<std::string, std::string>> metadata_of(const edit::Model& model) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& [field, whole] : model.rest) {
    if (field != 14) continue;
    std::string key, value;
    edit::read_fields(whole, [&](uint32_t, std::string_view entry) {
      edit::read_fields(entry, [&](uint32_t part, std::string_view payload) {
        (part == 1 ? key : value) = payload;
        return true;
      });
      return true;
    });
    entries.emplace_back(valid_utf8(key), valid_utf8(value));
  }
  return entries;
}

std::string header_extras(const edit::Model& model) {
  std::string text = fmt::format("IR Version: {} | Producer: {} {}", model.ir_version, text_field(model.rest, 2),
                                 text_field(model.rest, 3));
  std::vector<std::string> opsets;
  for (const edit::Opset& opset : model.opsets)
    opsets.push_back(fmt::format("{} {}", opset.domain.empty() ? "ai.onnx" : opset.domain, opset.version));
  text += "\nOperator sets: " + join(opsets, ", ");
  if (const std::string doc = text_field(model.rest, 6); !doc.empty()) text += "\nDoc string: " + doc;
  for (const auto& [key, value] : metadata_of(model)) text += fmt::format("\nMetadata: {} = {}", key, value);
  for (const edit::Function& function : model.functions)
    text += fmt::format("\nFunction: {}{}{} | {} node(s) | inputs [{}] | outputs [{}]", function.domain,
                        function.domain.empty() ? "" : ".", function.name, function.nodes.size(),
                        join(function.inputs, ", "), join(function.outputs, ", "));
  return text + "\n";
}

Json type_json(const edit::ValueType& type) {
  Json shape = nullptr;
  if (type.sizes) {
    shape = Json::array();
    for (const edit::Size& size : *type.sizes)
      shape.push_back(size.number ? Json(*size.number) : size.name.empty() ? Json(nullptr) : Json(size.name));
  }
  return {{"dtype", edit::numpy_name(type.element)}, {"shape", shape}};
}

Json values_json(const std::vector<edit::Value>& values) {
  Json list = Json::array();
  for (const edit::Value& value : values) {
    Json entry{{"name", value.name}};
    entry.update(type_json(edit::type_of(value)));
    list.push_back(std::move(entry));
  }
  return list;
}

Json nodes_json(const edit::Graph& graph, const ModelView& view) {
  const edit::Index index(graph);
  Json list = Json::array();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const edit::Node& node = graph.nodes[i];
    Json entry{{"name", node.name},
               {"op", node.op_type},
               {"domain", node.domain},
               {"inputs", node.inputs},
               {"outputs", node.outputs}};
    if (view.attrs)
      for (const edit::Attribute& attribute : node.attributes)
        entry["attributes"][attribute.name] = valid_utf8(edit::attribute_text(attribute));
    if (view.neighbours) {
      const auto [before, after] = around(graph, index, i);
      entry["fathers"] = before;
      entry["sons"] = after;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

/// Multiplications and additions at the fixed sizes of the survey's graph, symbols counted as 1.
int64_t flops_of(const Graph& graph) {
  int64_t total = 0;
  for (const Node* node : graph.nodes()) {
    SymbolValues ones;
    for (const std::string& symbol : symbols_used(*node)) ones[symbol] = 1;
    if (node->op->traits.flops != nullptr) total += node->op->traits.flops(*node, ones);
  }
  return total;
}

}  // namespace

std::string model_text(const edit::Model& model, const ModelView& view) {
  const edit::Graph& graph = model.graph;
  const Tensors tensors(graph);
  std::string text = fmt::format("Name: {} | ONNX Opset: {}\n", graph.name, model.opset());
  if (view.metadata) text += header_extras(model);
  text += fmt::format("\n---- {} Graph Input(s) ----\n{}\n", graph.inputs.size(), values_list(tensors, graph.inputs));
  text +=
      fmt::format("\n---- {} Graph Output(s) ----\n{}\n", graph.outputs.size(), values_list(tensors, graph.outputs));
  text += fmt::format("\n---- {} Initializer(s) ----\n", graph.weights.size());
  if (view.weights) {
    for (const edit::Weight& weight : graph.weights)
      text += fmt::format(
          "Initializer | {} | Values:\n{}\n\n", tensors.weight_text(weight),
          indented(edit::has_elements(weight) ? values_text(edit::tensor_of(model, weight)) : "(left out)", 4));
  } else if (view.layers) {
    std::vector<std::string> items;
    for (const edit::Weight& weight : graph.weights) items.push_back(tensors.weight_text(weight));
    text += braces(items) + "\n";
  }
  text += fmt::format("{}---- {} Node(s) ----\n", view.weights ? "" : "\n", graph.nodes.size());
  if (!view.layers && !view.attrs && !view.neighbours) return text;
  const edit::Index index(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    text += node_text(graph, view.neighbours ? &index : nullptr, tensors, i, view) + "\n";
  if (view.neighbours) text += fmt::format("---- Tensors ----{}\n", tensors_text(graph, index));
  return text;
}

Json model_json(const edit::Model& model, const ModelView& view) {
  const edit::Graph& graph = model.graph;
  Json json{{"name", graph.name},
            {"irVersion", model.ir_version},
            {"opset", model.opset()},
            {"producer", text_field(model.rest, 2)},
            {"producerVersion", text_field(model.rest, 3)}};
  for (const edit::Opset& opset : model.opsets)
    json["opsets"][opset.domain.empty() ? "ai.onnx" : opset.domain] = opset.version;
  if (const std::string doc = text_field(model.rest, 6); !doc.empty()) json["docString"] = doc;
  for (const auto& [key, value] : metadata_of(model)) json["metadata"][key] = value;
  json["inputs"] = values_json(graph.inputs);
  json["outputs"] = values_json(graph.outputs);
  std::map<std::string, int64_t> ops;
  for (const edit::Node& node : graph.nodes)
    ++ops[node.domain.empty() ? node.op_type : node.domain + "." + node.op_type];
  json["nodes"] = graph.nodes.size();
  json["ops"] = ops;
  int64_t parameters = 0, bytes = 0;
  for (const edit::Weight& weight : graph.weights) {
    parameters += edit::element_count(weight);
    bytes += edit::element_bytes(weight);
  }
  json["initializers"] = graph.weights.size();
  json["parameters"] = parameters;
  json["parameterBytes"] = bytes;
  try {
    const onnx::Survey found = edit::survey(model, edit::WeightData::small);
    json["flops"] = flops_of(found.graph);
    if (!found.problems.empty()) json["flopsLack"] = found.problems.size() + found.skipped.size();
  } catch (const Error& error) {
    json["flops"] = nullptr;
    json["problem"] = error.message();
  }
  for (const edit::Function& function : model.functions)
    json["functions"].push_back(
        {{"name", function.name}, {"domain", function.domain}, {"nodes", function.nodes.size()}});
  if (view.layers || view.attrs || view.neighbours) json["layers"] = nodes_json(graph, view);
  return json;
}

}  // namespace hone
