// SPDX-License-Identifier: Apache-2.0
#include "tools/model/pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_writer.hpp>

#include "onnx/proto.h"

namespace hone {
namespace {

void read_names(const onnx::GraphProto& body, std::vector<std::string>& names);

void read_names(const onnx::NodeProto& node, std::vector<std::string>& names) {
  for (const std::string_view input : node.inputs)
    if (!input.empty()) names.emplace_back(input);
  for (const onnx::AttributeProto& attribute : node.attributes)
    if (attribute.graph != nullptr) read_names(*attribute.graph, names);
}

void read_names(const onnx::GraphProto& body, std::vector<std::string>& names) {
  for (const onnx::NodeProto& node : body.nodes) read_names(node, names);
  for (const onnx::ValueProto& output : body.outputs) names.emplace_back(output.name);
}

std::string value_info(const std::string& name, const PieceType& type) {
  std::string shape, tensor, kind, out;
  for (const int64_t size : type.dims) {
    std::string dim;
    if (size >= 0) protozero::pbf_writer(dim).add_int64(1, size);
    protozero::pbf_writer(shape).add_message(1, dim);
  }
  protozero::pbf_writer(tensor).add_int64(1, onnx::onnx_type_of(type.dtype));
  protozero::pbf_writer(tensor).add_message(2, shape);
  protozero::pbf_writer(kind).add_message(1, tensor);
  protozero::pbf_writer(out).add_string(1, name);
  protozero::pbf_writer(out).add_message(2, kind);
  return out;
}

std::string name_alone(const std::string& name) {
  std::string out;
  protozero::pbf_writer(out).add_string(1, name);
  return out;
}

}  // namespace

ModelPieces::ModelPieces(Blob bytes) : bytes_(bytes), file_(std::move(bytes)) {
  const onnx::ModelProto model = onnx::parse_model(bytes_.bytes());
  for (const onnx::NodeProto& node : model.graph->nodes) {
    reads_.emplace_back();
    read_names(node, reads_.back());
  }
  for (const onnx::NamedMessage& weight : file_.initializers) weights_.insert(weight.name);
  find_neighbours();
}

void ModelPieces::find_neighbours() {
  readers_.resize(nodes());
  givers_.resize(nodes());
  for (size_t i = 0; i < nodes(); ++i)
    for (const std::string& output : node(i).outputs)
      if (!output.empty()) producer_[output] = i;
  for (size_t i = 0; i < nodes(); ++i)
    for (const std::string& input : reads_[i])
      if (const auto giver = producer_.find(input); giver != producer_.end() && giver->second != i) {
        givers_[i].insert(giver->second);
        readers_[giver->second].insert(i);
      }
}

std::string ModelPieces::node_name(size_t index) const {
  return node(index).name.empty() ? fmt::format("{}_{}", node(index).op_type, index) : node(index).name;
}

std::vector<std::string> ModelPieces::inputs_of(const std::set<size_t>& chosen) const {
  std::set<std::string> model_inputs;
  for (const onnx::NamedMessage& input : file_.inputs) model_inputs.insert(input.name);
  std::vector<std::string> names;
  for (const size_t i : chosen)
    for (const std::string& name : reads_[i]) {
      if (weights_.contains(name) || std::ranges::find(names, name) != names.end()) continue;
      const auto giver = producer_.find(name);
      const bool outside = giver != producer_.end() && !chosen.contains(giver->second);
      // Names that neither the graph gives nor takes are a body's own.
      if (outside || model_inputs.contains(name)) names.push_back(name);
    }
  return names;
}

std::vector<std::string> ModelPieces::outputs_of(const std::set<size_t>& chosen) const {
  std::vector<std::string> names;
  for (const size_t i : chosen)
    for (const std::string& name : node(i).outputs) {
      if (name.empty()) continue;
      bool read_inside = false, read_outside = false;
      for (const size_t reader : readers_[i]) {
        if (std::ranges::find(reads_[reader], name) == reads_[reader].end()) continue;
        (chosen.contains(reader) ? read_inside : read_outside) = true;
      }
      const bool output = std::ranges::find(file_.outputs, name, &onnx::NamedMessage::name) != file_.outputs.end();
      if (output || read_outside || !read_inside) names.push_back(name);
    }
  return names;
}

std::string ModelPieces::encode(const std::set<size_t>& chosen, const std::map<std::string, PieceType>& types) const {
  onnx::ModelFile part(bytes_);
  std::vector<onnx::FileNode> kept;
  std::set<std::string> read;
  for (const size_t i : chosen) {
    kept.push_back(part.nodes[i]);
    read.insert(reads_[i].begin(), reads_[i].end());
  }
  const auto message = [&](const std::string& name, const std::vector<onnx::NamedMessage>& first, bool needed) {
    for (const std::vector<onnx::NamedMessage>* list : {&first, &part.value_types})
      if (const auto found = std::ranges::find(*list, name, &onnx::NamedMessage::name); found != list->end())
        if (list == &first || !types.contains(name)) return *found;
    if (const auto type = types.find(name); type != types.end())
      return onnx::NamedMessage{name, part.keep(value_info(name, type->second))};
    if (needed)
      throw Error(fmt::format("the type of tensor {} is not known", name),
                  "infer shapes first: hone surgeon sanitize MODEL -o OUT, or python -m onnx.shape_inference");
    return onnx::NamedMessage{name, part.keep(name_alone(name))};
  };
  std::vector<onnx::NamedMessage> inputs, outputs;
  for (const std::string& name : inputs_of(chosen)) inputs.push_back(message(name, part.inputs, true));
  for (const std::string& name : outputs_of(chosen)) outputs.push_back(message(name, part.outputs, false));
  part.nodes = std::move(kept);
  part.inputs = std::move(inputs);
  part.outputs = std::move(outputs);
  std::erase_if(part.initializers, [&](const onnx::NamedMessage& weight) { return !read.contains(weight.name); });
  std::erase_if(part.value_types, [&](const onnx::NamedMessage& value) {
    const auto giver = producer_.find(value.name);
    return giver == producer_.end() || !chosen.contains(giver->second);
  });
  return part.encode();
}

}  // namespace hone
