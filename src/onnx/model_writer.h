// SPDX-License-Identifier: Apache-2.0
//
// Writes small ONNX models as bytes, for tests: also wrong ones, which no exporter would make.
#pragma once

#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace hone::onnx {

/// Messages as their bytes; every function returns one.
struct ModelWriter {
  static std::string dim(int64_t value) {
    std::string out;
    protozero::pbf_writer(out).add_int64(1, value);
    return out;
  }
  static std::string dim(const std::string& parameter) {
    std::string out;
    protozero::pbf_writer(out).add_string(2, parameter);
    return out;
  }
  /// A tensor-typed input or output; element type 1 is FLOAT, 7 INT64, 9 BOOL.
  static std::string value(const std::string& name, int elem_type, const std::vector<std::string>& dims) {
    std::string shape, tensor, type, out;
    for (const std::string& each : dims) protozero::pbf_writer(shape).add_message(1, each);
    protozero::pbf_writer(tensor).add_int32(1, elem_type);
    protozero::pbf_writer(tensor).add_message(2, shape);
    protozero::pbf_writer(type).add_message(1, tensor);
    protozero::pbf_writer(out).add_string(1, name);
    protozero::pbf_writer(out).add_message(2, type);
    return out;
  }
  static std::string integer_attr(const std::string& name, int64_t number) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_string(1, name);
    writer.add_int64(3, number);
    writer.add_int32(20, 2);
    return out;
  }
  static std::string integers_attr(const std::string& name, const std::vector<int64_t>& numbers) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_string(1, name);
    writer.add_packed_int64(8, numbers.begin(), numbers.end());
    writer.add_int32(20, 7);
    return out;
  }
  static std::string real_attr(const std::string& name, float number) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_string(1, name);
    writer.add_float(2, number);
    writer.add_int32(20, 1);
    return out;
  }
  static std::string reals_attr(const std::string& name, const std::vector<float>& numbers) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_string(1, name);
    writer.add_packed_float(7, numbers.begin(), numbers.end());
    writer.add_int32(20, 6);
    return out;
  }
  static std::string text_attr(const std::string& name, const std::string& text) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_string(1, name);
    writer.add_string(4, text);
    writer.add_int32(20, 3);
    return out;
  }
  static std::string texts_attr(const std::string& name, const std::vector<std::string>& texts) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_string(1, name);
    for (const std::string& text : texts) writer.add_string(9, text);
    writer.add_int32(20, 8);
    return out;
  }
  static std::string tensor_attr(const std::string& name, const std::string& tensor) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_string(1, name);
    writer.add_message(5, tensor);
    writer.add_int32(20, 4);
    return out;
  }
  static std::string graph_attr(const std::string& name, const std::string& graph) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_string(1, name);
    writer.add_message(6, graph);
    writer.add_int32(20, 5);
    return out;
  }
  static std::string reference_attr(const std::string& name, const std::string& reference, int type) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_string(1, name);
    writer.add_int32(20, type);
    writer.add_string(21, reference);
    return out;
  }
  static std::string node(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::vector<std::string>& attributes = {},
                          const std::string& name = {}, const std::string& domain = {}) {
    std::string out;
    protozero::pbf_writer writer(out);
    for (const std::string& each : inputs) writer.add_string(1, each);
    for (const std::string& each : outputs) writer.add_string(2, each);
    writer.add_string(3, name);
    writer.add_string(4, op);
    for (const std::string& each : attributes) writer.add_message(5, each);
    writer.add_string(7, domain);
    return out;
  }
  static std::string raw_tensor(const std::string& name, int data_type, const std::vector<int64_t>& dims,
                                const std::string& raw) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_packed_int64(1, dims.begin(), dims.end());
    writer.add_int32(2, data_type);
    writer.add_string(8, name);
    writer.add_bytes(9, raw);
    return out;
  }
  static std::string integers(const std::string& name, const std::vector<int64_t>& dims,
                              const std::vector<int64_t>& values) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_packed_int64(1, dims.begin(), dims.end());
    writer.add_int32(2, 7);
    writer.add_packed_int64(7, values.begin(), values.end());
    writer.add_string(8, name);
    return out;
  }
  static std::string external(const std::string& name, int data_type, const std::vector<int64_t>& dims,
                              const std::vector<std::pair<std::string, std::string>>& entries) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_packed_int64(1, dims.begin(), dims.end());
    writer.add_int32(2, data_type);
    writer.add_string(8, name);
    for (const auto& [key, text] : entries) {
      std::string entry;
      protozero::pbf_writer(entry).add_string(1, key);
      protozero::pbf_writer(entry).add_string(2, text);
      writer.add_message(13, entry);
    }
    writer.add_int32(14, 1);
    return out;
  }
  struct GraphParts {
    std::vector<std::string> nodes, initializers = {}, inputs = {}, outputs = {};
  };
  static std::string graph(const GraphParts& parts) {
    std::string out;
    protozero::pbf_writer writer(out);
    for (const std::string& each : parts.nodes) writer.add_message(1, each);
    for (const std::string& each : parts.initializers) writer.add_message(5, each);
    for (const std::string& each : parts.inputs) writer.add_message(11, each);
    for (const std::string& each : parts.outputs) writer.add_message(12, each);
    return out;
  }
  static std::string opset(const std::string& domain, int64_t version) {
    std::string out;
    protozero::pbf_writer(out).add_string(1, domain);
    protozero::pbf_writer(out).add_int64(2, version);
    return out;
  }
  static std::string function(const std::string& name, const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs, const std::vector<std::string>& nodes) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_string(1, name);
    for (const std::string& each : inputs) writer.add_string(4, each);
    for (const std::string& each : outputs) writer.add_string(5, each);
    for (const std::string& each : nodes) writer.add_message(7, each);
    writer.add_message(9, opset("", 17));
    writer.add_message(9, opset("local", 1));
    writer.add_string(10, "local");
    return out;
  }
  /// Operator sets as the bytes of opset().
  static Blob model_of(const std::string& graph_bytes, const std::vector<std::string>& opsets) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_int64(1, 8);
    writer.add_message(7, graph_bytes);
    for (const std::string& each : opsets) writer.add_message(8, each);
    return Blob::copy(out);
  }
  static Blob model(const std::string& graph_bytes, const std::vector<std::string>& functions = {},
                    int64_t version = 17) {
    std::string out;
    protozero::pbf_writer writer(out);
    writer.add_int64(1, 8);
    writer.add_string(2, "test");
    writer.add_message(7, graph_bytes);
    writer.add_message(8, opset("", version));
    writer.add_message(8, opset("local", 1));
    for (const std::string& each : functions) writer.add_message(25, each);
    return Blob::copy(out);
  }
};

}  // namespace hone::onnx
