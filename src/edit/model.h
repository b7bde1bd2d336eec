// SPDX-License-Identifier: Apache-2.0
//
// An ONNX model that is edited: nodes, weights and values by name, bodies and functions included. It is lossless: what is not edited
// (documentation, metadata, attributes and fields that Hone does not know) goes from file to file as it stands. Weights are views of the
// mapped file; external ones stay references until the model is written somewhere else.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "edit/fields.h"
#include "onnx/proto.h"
#include "tensor/tensor.h"

namespace hone::edit {

struct Graph;

/// The part of another file in which a tensor's elements lie.
struct FileRange {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
  int64_t pieces = 1,
          stride = 0;  // of one size, of `length` together; of several, only a model that is written anew tells
};

/// A TensorProto with a name.
struct Weight {
  std::string name;
  int64_t type = 0;  // ONNX's number
  std::vector<int64_t> dims;
  std::string_view bytes;  // encoded; the name in it counts for nothing
  std::optional<FileRange> file;
};

struct Attribute {
  std::string name;
  int64_t type = 0;                            // ONNX's number
  std::string_view bytes;                      // encoded; of a body everything but the body
  std::vector<std::shared_ptr<Graph>> bodies;  // one of GRAPH, some of GRAPHS
};

struct Node {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;  // empty: an optional one that is not there
  std::vector<Attribute> attributes;
  Rest rest;

  const Attribute* attribute(std::string_view attribute_name) const;
};

/// A ValueInfoProto.
struct Value {
  std::string name;
  std::string_view bytes;  // encoded; the name in it counts for nothing
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Weight> weights;
  std::vector<Value> inputs, outputs, values;
  std::vector<Value> sparse;  // SparseTensorProtos; the name is that of the values
  Rest rest;
};

struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<Node> nodes;
  Rest rest;
};

struct Opset {
  std::string domain;
  int64_t version = 0;
  Rest rest;
};

struct Model {
  int64_t ir_version = 0;
  std::vector<Opset> opsets;
  Graph graph;
  std::vector<Function> functions;
  Rest rest;

  std::shared_ptr<const void> owner;  // of the bytes that were read
  std::string directory;              // where external files are looked for; empty: nowhere
  std::shared_ptr<std::deque<std::string>> added = std::make_shared<std::deque<std::string>>();

  /// Memory for what is added, as long as the model's.
  std::string_view keep(std::string bytes) { return added->emplace_back(std::move(bytes)); }
  /// Of the default domain; 0: the model does not say.
  int64_t opset() const;
};

/// Throws Error when the bytes are no ONNX model. The model views them.
Model read_model(const Blob& bytes, const std::string& directory);
/// Maps the file. Throws MissingFile (edit/file.h) or Error.
Model open_model(const std::string& path);
Rope encode(const Model& model);
Rope encode(const Graph& graph);
Rope encode(const Weight& weight);
Rope encode(const Value& value);
Rope encode(const Node& node);
Rope encode(const Opset& opset);

/// Messages by themselves; protozero::exception where they are damaged. Of an attribute the bodies, too.
Weight read_weight(std::string_view bytes);
Value read_value(std::string_view bytes);
Value read_sparse(std::string_view bytes);
Attribute read_attribute(std::string_view bytes);
Opset read_opset(std::string_view bytes);
/// An empty model of this operator set.
Model new_model(const std::string& graph_name, int64_t opset, int64_t ir_version);

}  // namespace hone::edit
