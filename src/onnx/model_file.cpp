// SPDX-License-Identifier: Apache-2.0
#include "onnx/model_file.h"

#include <limits>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "base/error.h"
#include "onnx/proto.h"

namespace hone::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;

// Field numbers of onnx.proto.
namespace model {
constexpr protozero::pbf_tag_type kIrVersion = 1, kGraph = 7, kOpset = 8, kFunction = 25;
}
namespace opset {
constexpr protozero::pbf_tag_type kDomain = 1, kVersion = 2;
}
namespace graph {
constexpr protozero::pbf_tag_type kNode = 1, kInitializer = 5, kInput = 11, kOutput = 12, kValueType = 13;
}
namespace node {
constexpr protozero::pbf_tag_type kInput = 1, kOutput = 2, kName = 3, kOperator = 4, kAttribute = 5, kDomain = 7;
}
namespace tensor {
constexpr protozero::pbf_tag_type kDims = 1, kType = 2, kName = 8, kRaw = 9, kLocation = 14;
}
namespace attribute {
constexpr protozero::pbf_tag_type kName = 1, kInteger = 3, kGraph = 6, kGraphs = 11, kType = 20;
constexpr int kIntegerType = 2;
}  // namespace attribute
constexpr protozero::pbf_tag_type kNameOfValue = 1, kTypeOfValue = 2, kTensorType = 1, kElementType = 1;

/// Calls `take` for every field that is no number; what it does not take is appended to the result as it stands, but for fields
/// numbered `dropped`.
template <typename Take>
std::string read_fields(std::string_view bytes, const Take& take, protozero::pbf_tag_type dropped = 0) {
  std::string rest;
  pbf_reader message(bytes.data(), bytes.size());
  for (;;) {
    const protozero::data_view before = message.data();
    if (!message.next()) return rest;
    const char* const start = before.data();
    const protozero::pbf_tag_type tag = message.tag();  // gone once the field is read
    if (message.wire_type() == pbf_wire_type::length_delimited) {
      const protozero::data_view view = message.get_view();
      if (take(tag, std::string_view(view.data(), view.size()))) continue;
    } else {
      message.skip();
      if (tag == dropped) continue;
    }
    rest.append(start, static_cast<size_t>(message.data().data() - start));
  }
}

std::string name_in(std::string_view bytes, protozero::pbf_tag_type tag) {
  std::string name;
  pbf_reader message(bytes.data(), bytes.size());
  while (message.next())
    if (message.tag() == tag && message.wire_type() == pbf_wire_type::length_delimited) name = message.get_string();
    else message.skip();
  return name;
}

int64_t integer_in(std::string_view bytes, protozero::pbf_tag_type tag) {
  int64_t number = 0;
  pbf_reader message(bytes.data(), bytes.size());
  while (message.next())
    if (message.tag() == tag && message.wire_type() == pbf_wire_type::varint) number = message.get_int64();
    else message.skip();
  return number;
}

FileNode read_node(std::string_view bytes) {
  FileNode result;
  result.rest = read_fields(bytes, [&](protozero::pbf_tag_type tag, std::string_view field) {
    switch (tag) {
      case node::kInput: result.inputs.emplace_back(field); return true;
      case node::kOutput: result.outputs.emplace_back(field); return true;
      case node::kName: result.name = field; return true;
      case node::kOperator: result.op_type = field; return true;
      case node::kDomain: result.domain = field; return true;
      case node::kAttribute: result.attributes.push_back({name_in(field, attribute::kName), field}); return true;
      default: return false;
    }
  });
  return result;
}

std::string encode_node(const FileNode& given) {
  std::string bytes;
  pbf_writer writer(bytes);
  for (const std::string& input : given.inputs) writer.add_string(node::kInput, input);
  for (const std::string& output : given.outputs) writer.add_string(node::kOutput, output);
  if (!given.name.empty()) writer.add_string(node::kName, given.name);
  writer.add_string(node::kOperator, given.op_type);
  for (const NamedMessage& each : given.attributes)
    writer.add_message(node::kAttribute, each.bytes.data(), each.bytes.size());
  if (!given.domain.empty()) writer.add_string(node::kDomain, given.domain);
  bytes += given.rest;
  return bytes;
}

void add_messages(pbf_writer& writer, protozero::pbf_tag_type tag, const std::vector<NamedMessage>& messages) {
  for (const NamedMessage& each : messages) writer.add_message(tag, each.bytes.data(), each.bytes.size());
}

std::string unique(std::set<std::string, std::less<>>& taken, const std::string& base) {
  std::string name = base;
  for (int i = 1; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

/// The bytes of TensorProto.raw_data: several small elements share one, the first in the low bits.
std::string raw_data(const Tensor& given) {
  const auto bits = static_cast<size_t>(bits_of(given.dtype()));
  const std::string_view bytes = given.blob().text();
  if (bits >= 8) return std::string(bytes);
  const size_t per_byte = 8 / bits;
  std::string packed((bytes.size() + per_byte - 1) / per_byte, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto code = static_cast<unsigned>(static_cast<unsigned char>(bytes[i])) & ((1U << bits) - 1);
    packed[i / per_byte] =
        static_cast<char>(static_cast<unsigned char>(packed[i / per_byte]) | code << i % per_byte * bits);
  }
  return packed;
}

}  // namespace

ModelFile::ModelFile(Blob bytes) : bytes_(std::move(bytes)) {
  (void)parse_model(bytes_.bytes());  // refuses what is no model, with the place
  try {
    read_model();
  } catch (const protozero::exception& error) {  // in what no import reads, as types of tensors inside
    throw_not_onnx(error.what(), bytes_.bytes().size());
  }
}

void ModelFile::read_model() {
  ir_version = integer_in(bytes_.text(), model::kIrVersion);
  const auto take = [&](protozero::pbf_tag_type tag, std::string_view field) {
    if (tag == model::kGraph) read_graph(field);
    if (tag == model::kFunction) has_functions_ = true;
    if (tag == model::kOpset) {
      const std::string domain = name_in(field, opset::kDomain);
      opsets[std::string(canonical_domain(domain))] = integer_in(field, opset::kVersion);
    }
    return tag == model::kGraph || tag == model::kOpset;
  };
  model_rest_ = read_fields(bytes_.text(), take, model::kIrVersion);
}

void ModelFile::read_graph(std::string_view bytes) {
  graph_rest_ = read_fields(bytes, [&](protozero::pbf_tag_type tag, std::string_view field) {
    switch (tag) {
      case graph::kNode: nodes.push_back(read_node(field)); return true;
      case graph::kInitializer: initializers.push_back({name_in(field, tensor::kName), field}); return true;
      case graph::kInput: inputs.push_back({name_in(field, kNameOfValue), field}); return true;
      case graph::kOutput: outputs.push_back({name_in(field, kNameOfValue), field}); return true;
      case graph::kValueType: value_types.push_back({name_in(field, kNameOfValue), field}); return true;
      default: return false;
    }
  });
  for (const FileNode& each : nodes) {
    node_names_.insert(each.name);
    tensor_names_.insert(each.inputs.begin(), each.inputs.end());
    tensor_names_.insert(each.outputs.begin(), each.outputs.end());
  }
  for (const std::vector<NamedMessage>* list : {&initializers, &inputs, &outputs})
    for (const NamedMessage& each : *list) tensor_names_.insert(each.name);
}

std::string_view ModelFile::keep(std::string bytes) { return kept_.emplace_back(std::move(bytes)); }

void ModelFile::add_initializer(const std::string& name, const Tensor& value) {
  initializers.push_back({name, keep(encode_tensor(name, value))});
}

/// Models before IR version 4 list initialisers among the inputs, too.
void ModelFile::remove_initializer(std::string_view name) {
  std::erase_if(initializers, [&](const NamedMessage& each) { return each.name == name; });
  std::erase_if(inputs, [&](const NamedMessage& each) { return each.name == name; });
}

std::string ModelFile::unique_tensor_name(const std::string& base) { return unique(tensor_names_, base); }
std::string ModelFile::unique_node_name(const std::string& base) { return unique(node_names_, base); }

std::string ModelFile::encode_graph() const {
  std::string bytes;
  pbf_writer writer(bytes);
  for (const FileNode& each : nodes) writer.add_message(graph::kNode, encode_node(each));
  add_messages(writer, graph::kInitializer, initializers);
  add_messages(writer, graph::kInput, inputs);
  add_messages(writer, graph::kOutput, outputs);
  add_messages(writer, graph::kValueType, value_types);
  bytes += graph_rest_;
  return bytes;
}

std::string ModelFile::encode() const {
  constexpr size_t kLongest = std::numeric_limits<int32_t>::max();
  std::string bytes = model_rest_;
  pbf_writer writer(bytes);
  writer.add_int64(model::kIrVersion, ir_version);
  for (const auto& [domain, version] : opsets) {
    std::string entry;
    pbf_writer fields(entry);
    fields.add_string(opset::kDomain, domain);
    fields.add_int64(opset::kVersion, version);
    writer.add_message(model::kOpset, entry);
  }
  const std::string encoded = encode_graph();
  if (encoded.size() + bytes.size() > kLongest)
    throw Error(fmt::format("the model would have {} bytes; a file of ONNX has at most {}", encoded.size(), kLongest),
                "quantise more of it, or give a smaller model");
  writer.add_message(model::kGraph, encoded);
  return bytes;
}

std::string encode_tensor(const std::string& name, const Tensor& value) {
  HONE_ASSERT(!is_object(value.dtype()), "{} is a tensor of objects", name);
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_packed_int64(tensor::kDims, value.dims().begin(), value.dims().end());
  writer.add_int32(tensor::kType, static_cast<int32_t>(onnx_type_of(value.dtype())));
  writer.add_string(tensor::kName, name);
  writer.add_bytes(tensor::kRaw, raw_data(value));
  return bytes;
}

std::string encode_attribute(const std::string& name, int64_t value) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_string(attribute::kName, name);
  writer.add_int64(attribute::kInteger, value);
  writer.add_int32(attribute::kType, attribute::kIntegerType);
  return bytes;
}

FileNode make_node(ModelFile& file, std::string name, std::string op_type, std::vector<std::string> inputs,
                   std::vector<std::string> outputs, const std::vector<std::pair<std::string, int64_t>>& attributes) {
  FileNode made;
  made.name = std::move(name);
  made.op_type = std::move(op_type);
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  for (const auto& [key, value] : attributes) made.attributes.push_back({key, file.keep(encode_attribute(key, value))});
  return made;
}

std::string with_element_type(std::string_view value, DType type) {
  const auto rewritten = [](std::string_view message, protozero::pbf_tag_type tag, const auto& inner) {
    std::string bytes, found;
    const std::string rest = read_fields(message, [&](protozero::pbf_tag_type each, std::string_view field) {
      if (each == tag) found = inner(field);
      return each == tag;
    });
    bytes = rest;
    pbf_writer(bytes).add_message(tag, found);
    return bytes;
  };
  return rewritten(value, kTypeOfValue, [&](std::string_view type_message) {
    return rewritten(type_message, kTensorType, [&](std::string_view tensor_type) {
      std::string bytes = read_fields(
          tensor_type, [](protozero::pbf_tag_type, std::string_view) { return false; }, kElementType);
      pbf_writer(bytes).add_int32(kElementType, static_cast<int32_t>(onnx_type_of(type)));
      return bytes;
    });
  });
}

bool is_graph(const NamedMessage& given) {
  pbf_reader message(given.bytes.data(), given.bytes.size());
  bool graph = false;
  for (; message.next(); message.skip())
    graph |= message.tag() == attribute::kGraph || message.tag() == attribute::kGraphs;
  return graph;
}

std::vector<FileNode> nodes_in_bodies(const FileNode& given) {
  std::vector<FileNode> found;
  const auto read_body = [&](protozero::pbf_tag_type tag, std::string_view field) {
    if (tag == graph::kNode) found.push_back(read_node(field));
    return true;
  };
  for (const NamedMessage& each : given.attributes)
    read_fields(each.bytes, [&](protozero::pbf_tag_type tag, std::string_view field) {
      if (tag == attribute::kGraph || tag == attribute::kGraphs) read_fields(field, read_body);
      return true;
    });
  return found;
}

bool is_external(const NamedMessage& given) { return integer_in(given.bytes, tensor::kLocation) == 1; }

}  // namespace hone::onnx
