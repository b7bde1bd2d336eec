// SPDX-License-Identifier: Apache-2.0
//
// The C interface's networks that are put together by hand: they become an ONNX file, which the importer reads, so that operators mean
// and refuse what they do in files.
#include "capi/network.h"

#include <protozero/pbf_writer.hpp>

#include "capi/build_handles.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/log.h"
#include "capi/operators/operators.h"
#include "capi/tensor.h"
#include "onnx/importer.h"
#include "onnx/proto.h"

using hone::capi::ArgumentError;
using hone::capi::guarded;
using hone::capi::require;
using hone::capi::taken;
using protozero::pbf_writer;

namespace {

constexpr int64_t kIrVersion = 10;
// Fields of onnx.proto's messages, and types of its attributes.
constexpr int kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kGraph = 5, kFloats = 6, kInts = 7, kStrings = 8;

int32_t onnx_type(hone_dtype dtype) {
  if (dtype < HONE_F32 || dtype >= HONE_SEQUENCE)
    throw ArgumentError(fmt::format("dtype {} is no type of a tensor", static_cast<int>(dtype)));
  return static_cast<int32_t>(hone::onnx::onnx_type_of(static_cast<hone::DType>(dtype)));
}

std::string input_message(const char* name, hone_dtype dtype, const int64_t* dims, int rank,
                          const char* const* symbols) {
  std::string shape, tensor, type, message;
  for (int axis = 0; axis < rank; ++axis) {
    std::string dim;
    if (dims[axis] >= 0) pbf_writer(dim).add_int64(1, dims[axis]);
    else if (symbols != nullptr && symbols[axis] != nullptr) pbf_writer(dim).add_string(2, symbols[axis]);
    pbf_writer(shape).add_message(1, dim);
  }
  pbf_writer(tensor).add_int32(1, onnx_type(dtype));
  pbf_writer(tensor).add_message(2, shape);
  pbf_writer(type).add_message(1, tensor);
  pbf_writer(message).add_string(1, name);
  pbf_writer(message).add_message(2, type);
  return message;
}

std::string tensor_message(const std::string& name, const hone_value* value) {
  require(value, "a tensor");
  const hone::Tensor& tensor = value->tensor;
  if (hone::is_object(tensor.dtype()) || hone::bits_of(tensor.dtype()) % 8 != 0)
    throw ArgumentError(
        fmt::format("{} holds {}, of which a network has no constants", name, hone::name_of(tensor.dtype())),
        "give it as an input");
  std::string message;
  pbf_writer writer(message);
  writer.add_packed_int64(1, tensor.dims().begin(), tensor.dims().end());
  writer.add_int32(2, onnx_type(static_cast<hone_dtype>(tensor.dtype())));
  writer.add_string(8, name);
  const std::span<const std::byte> bytes = tensor.bytes();
  writer.add_bytes(9, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return message;
}

/// GraphProto.
std::string graph_message(const hone_network& network) {
  std::string graph;
  for (const std::string& node : network.nodes) pbf_writer(graph).add_message(1, node);
  pbf_writer(graph).add_string(2, "network");
  for (const std::string& constant : network.constants) pbf_writer(graph).add_message(5, constant);
  for (const std::string& input : network.inputs) pbf_writer(graph).add_message(11, input);
  for (const std::string& output : network.outputs) {
    std::string value;
    pbf_writer(value).add_string(1, output);
    pbf_writer(graph).add_message(12, value);
  }
  return graph;
}

std::string attribute_message(const hone_attribute& attribute) {
  require(attribute.name, "attributes->name");
  std::string message;
  pbf_writer writer(message);
  writer.add_string(1, attribute.name);
  const auto list = [&](const void* entries, const char* what) {
    if (attribute.count > 0) require(entries, what);
  };
  switch (attribute.kind) {
    case HONE_ATTRIBUTE_INTEGER:
      writer.add_int64(3, attribute.integer);
      writer.add_int32(20, kInt);
      break;
    case HONE_ATTRIBUTE_REAL:
      writer.add_float(2, attribute.real);
      writer.add_int32(20, kFloat);
      break;
    case HONE_ATTRIBUTE_TEXT:
      require(attribute.text, "attributes->text");
      writer.add_string(4, attribute.text);
      writer.add_int32(20, kString);
      break;
    case HONE_ATTRIBUTE_INTEGERS:
      list(attribute.integers, "attributes->integers");
      writer.add_packed_int64(8, attribute.integers, attribute.integers + attribute.count);
      writer.add_int32(20, kInts);
      break;
    case HONE_ATTRIBUTE_REALS:
      list(attribute.reals, "attributes->reals");
      writer.add_packed_float(7, attribute.reals, attribute.reals + attribute.count);
      writer.add_int32(20, kFloats);
      break;
    case HONE_ATTRIBUTE_TEXTS:
      list(attribute.texts, "attributes->texts");
      for (size_t i = 0; i < attribute.count; ++i) {
        require(attribute.texts[i], "attributes->texts");
        writer.add_string(9, attribute.texts[i]);
      }
      writer.add_int32(20, kStrings);
      break;
    case HONE_ATTRIBUTE_TENSOR:
      require(attribute.tensor, "attributes->tensor");
      writer.add_message(5, tensor_message(attribute.name, attribute.tensor));
      writer.add_int32(20, kTensor);
      break;
    case HONE_ATTRIBUTE_NETWORK:
      require(attribute.network, "attributes->network");
      writer.add_message(6, graph_message(*attribute.network));
      writer.add_int32(20, kGraph);
      break;
    default: throw ArgumentError(fmt::format("there is no kind of attribute {}", static_cast<int>(attribute.kind)));
  }
  return message;
}

void add_names(pbf_writer& writer, protozero::pbf_tag_type field, const char* const* names, size_t count,
               const char* what) {
  if (count > 0) require(names, what);
  for (size_t i = 0; i < count; ++i) {
    require(names[i], what);
    writer.add_string(field, names[i]);
  }
}

std::string node_message(const hone_node& node, size_t number) {
  require(node.op, "node->op");
  std::string message;
  pbf_writer writer(message);
  add_names(writer, 1, node.inputs, node.input_count, "node->inputs");
  add_names(writer, 2, node.outputs, node.output_count, "node->outputs");
  writer.add_string(3, node.name != nullptr ? std::string(node.name) : fmt::format("{}_{}", node.op, number));
  writer.add_string(4, node.op);
  if (node.domain != nullptr) writer.add_string(7, node.domain);
  if (node.attribute_count > 0) require(node.attributes, "node->attributes");
  const auto* at = reinterpret_cast<const std::byte*>(node.attributes);
  for (size_t i = 0; i < node.attribute_count; ++i) {
    const auto* given = reinterpret_cast<const hone_attribute*>(at);
    writer.add_message(5, attribute_message(taken(given, "attributes")));
    at += given->size;
  }
  return message;
}

}  // namespace

std::string hone::capi::file_of(const hone_network& network) {
  std::string file;
  std::string opset;
  pbf_writer(opset).add_string(1, "");
  pbf_writer(opset).add_int64(2, network.opset);
  pbf_writer(file).add_int64(1, kIrVersion);
  pbf_writer(file).add_string(2, "hone");
  pbf_writer(file).add_message(7, graph_message(network));
  pbf_writer(file).add_message(8, opset);
  return file;
}

hone_status hone_network_create(int opset, hone_network** network) {
  return guarded([&] {
    require(network, "network");
    if (opset < 1 || opset > 1000) throw ArgumentError(fmt::format("opset is {}", opset));
    auto made = std::make_unique<hone_network>();
    made->opset = opset;
    *network = made.release();
  });
}

hone_status hone_network_add_input(hone_network* network, const char* name, hone_dtype dtype, const int64_t* dims,
                                   int rank, const char* const* symbols) {
  return guarded([&] {
    require(network, "network");
    require(name, "name");
    if (rank < 0 || rank > HONE_MAX_RANK) throw ArgumentError(fmt::format("rank is {}", rank));
    if (rank > 0) require(dims, "dims");
    network->inputs.push_back(input_message(name, dtype, dims, rank, symbols));
  });
}

hone_status hone_network_add_constant(hone_network* network, const char* name, const hone_value* value) {
  return guarded([&] {
    require(network, "network");
    require(name, "name");
    require(value, "value");
    network->constants.push_back(tensor_message(name, value));
  });
}

hone_status hone_network_add_node(hone_network* network, const hone_node* node) {
  return guarded([&] {
    require(network, "network");
    network->nodes.push_back(node_message(taken(node, "node"), network->nodes.size()));
  });
}

hone_status hone_network_mark_output(hone_network* network, const char* tensor) {
  return guarded([&] {
    require(network, "network");
    require(tensor, "tensor");
    network->outputs.emplace_back(tensor);
  });
}

hone_status hone_network_bytes(hone_network* network, const void** bytes, size_t* size) {
  return guarded([&] {
    require(network, "network");
    require(bytes, "bytes");
    require(size, "size");
    network->file = hone::capi::file_of(*network);
    *bytes = network->file.data();
    *size = network->file.size();
  });
}

void hone_network_destroy(hone_network* network) { hone::capi::destroy(network, "network"); }

hone_status hone_model_create_from_network(const hone_network* network, const hone_log* log, hone_model** model) {
  return guarded([&] {
    require(network, "network");
    require(model, "model");
    hone::ImportedModel imported =
        hone::import_onnx_bytes(hone::Blob::copy(hone::capi::file_of(*network)), hone::capi::logger_for(log), {},
                                hone::capi::program_operators());
    *model = new hone_model(std::move(imported));
  });
}
