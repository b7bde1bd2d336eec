// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/change.h"

#include <algorithm>

#include "edit/changes/clean.h"
#include "edit/names.h"

namespace hone::edit {
namespace {

Node node_of(Model& model, const NewNode& given) {
  Node node;
  node.name = given.name;
  node.op_type = given.op_type;
  node.domain = given.domain;
  node.inputs = given.inputs;
  node.outputs = given.outputs;
  for (const auto& [name, value] : given.attributes) node.attributes.push_back(make_attribute(model, name, value));
  return node;
}

}  // namespace

void replace_uses(Graph& graph, const std::string& from, const std::string& to) {
  std::vector<std::vector<std::string>> outputs;
  for (Node& node : graph.nodes) outputs.push_back(std::exchange(node.outputs, {}));
  std::vector<Value> own = std::exchange(graph.outputs, {});
  std::vector<Weight> weights = std::exchange(graph.weights, {});
  std::vector<Value> inputs = std::exchange(graph.inputs, {}), values = std::exchange(graph.values, {});
  rename_tensor(graph, from, to);
  graph.outputs = std::move(own);
  graph.weights = std::move(weights);
  graph.inputs = std::move(inputs);
  graph.values = std::move(values);
  for (size_t i = 0; i < graph.nodes.size(); ++i) graph.nodes[i].outputs = std::move(outputs[i]);
}

void add_node(Model& model, const NewNode& given) {
  const Index index(model.graph);
  for (const std::string& name : given.inputs)
    if (!name.empty()) need_tensor(model.graph, index, name);
  for (const std::string& name : given.outputs)
    if (index.producer.contains(name) || index.weight.contains(name) || index.inputs.contains(name))
      throw Error(fmt::format("{} is made by something else already", name),
                  "give the node's result a name of its own");
  model.graph.nodes.push_back(node_of(model, given));
  sort_nodes(model);
}

void insert_node(Model& model, const NewNode& given) {
  Graph& graph = model.graph;
  const Index index(graph);
  for (const std::vector<std::string>* names : {&given.inputs, &given.outputs})
    for (const std::string& name : *names)
      if (!name.empty()) need_tensor(graph, index, name);
  std::unordered_set<std::string> taken = tensor_names(graph);
  NewNode made = given;
  size_t place = graph.nodes.size();
  for (std::string& output : made.outputs) {
    const bool through = std::ranges::find(given.inputs, output) != given.inputs.end();
    if (const auto at = index.producer.find(output); at != index.producer.end()) place = std::min(place, at->second);
    if (!through) {
      // The old producer keeps its place in the graph as long as others of its results are read.
      for (Node& node : graph.nodes)
        for (std::string& old : node.outputs)
          if (old == output) old = fresh_name(taken, output + "_replaced");
      continue;
    }
    const std::string fresh = fresh_name(taken, output + (index.outputs.contains(output) ? "_before" : "_inserted"));
    if (!index.outputs.contains(output)) {
      replace_uses(graph, output, fresh);
      output = fresh;
      continue;
    }
    // A result of the graph keeps its name: what made it makes the node's input under another one.
    if (!index.producer.contains(output))
      throw Error(fmt::format("{} is an input or a weight and an output of the graph at once", output),
                  "insert the node somewhere else");
    for (Node& node : graph.nodes) std::ranges::replace(node.outputs, output, fresh);
    for (std::string& input : made.inputs)
      if (input == output) input = fresh;
  }
  graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(std::min(place, graph.nodes.size())),
                     node_of(model, made));
  sort_nodes(model);
  clean(model);
}

void remove_node(Model& model, size_t position) {
  Graph& graph = model.graph;
  const Node node = graph.nodes.at(position);
  const Index index(graph);
  const auto is_read = [&](const std::string& output) {
    return !output.empty() && (index.consumers.contains(output) || index.outputs.contains(output));
  };
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& output = node.outputs[i];
    if (!is_read(output)) continue;
    const std::string input = i < node.inputs.size() ? node.inputs[i] : node.inputs.empty() ? "" : node.inputs[0];
    if (input.empty())
      throw Error(
          fmt::format("{} has no input that could take the place of its result {}", label_of(node, position), output),
          "replace it by another node instead");
  }
  graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(position));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& output = node.outputs[i];
    if (!is_read(output)) continue;
    const std::string& input = i < node.inputs.size() ? node.inputs[i] : node.inputs[0];
    if (!index.outputs.contains(output)) {
      rename_tensor(graph, output, input);
      std::erase_if(graph.values, [&, seen = false](const Value& value) mutable {
        return value.name == input && std::exchange(seen, true);
      });
    } else if (index.producer.contains(input) && !index.outputs.contains(input)) {
      std::erase_if(graph.values, [&](const Value& value) { return value.name == input; });
      rename_tensor(graph, input, output);
    } else {  // the graph's own input, weight or other output: it cannot take the name
      Node copy;
      copy.name = output + "_Identity";
      copy.op_type = "Identity";
      copy.inputs = {input};
      copy.outputs = {output};
      graph.nodes.push_back(std::move(copy));
    }
  }
  sort_nodes(model);
}

void set_weight(Model& model, const std::string& name, const Tensor& tensor) {
  const Index index(model.graph);
  need_tensor(model.graph, index, name);
  const auto at = index.weight.find(name);
  if (at == index.weight.end())
    throw UnknownName(fmt::format("{} is no weight of the model", name), "name an initialiser");
  Weight& weight = model.graph.weights[at->second];
  if (weight.dims != tensor.dims())
    throw Error(fmt::format("{} is [{}]; the values given are [{}]", name, join_dims(weight.dims, ","),
                            join_dims(tensor.dims(), ",")),
                "give values of the same shape");
  const int64_t given = onnx::onnx_type_of(tensor.dtype());
  // NumPy has no word for the 16 bits of bfloat16: they come as integers.
  const bool same_bits = weight.type == 16 && tensor.dtype() == DType::u16;
  if (weight.type != given && !same_bits)
    throw Error(fmt::format("{} is {}; the values given are {}", name, numpy_name(weight.type), numpy_name(given)),
                fmt::format("convert them: values.astype('{}')", numpy_name(weight.type)));
  const Tensor typed = same_bits ? Tensor(DType::bf16, tensor.dims(), tensor.blob()) : tensor;
  weight = make_weight(model, name, typed);
}

void rename(Model& model, const std::string& from, const std::string& to) {
  const Index index(model.graph);
  need_tensor(model.graph, index, from);
  if (tensor_names(model.graph).contains(to))
    throw Error(fmt::format("there is a tensor called {} already", to), "choose another name");
  rename_tensor(model.graph, from, to);
}

}  // namespace hone::edit
