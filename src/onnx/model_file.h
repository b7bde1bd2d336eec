// SPDX-License-Identifier: Apache-2.0
//
// A model that is changed and written again. What nobody changes goes from the one file to the other byte by byte, whether Hone
// knows it or not: attributes, documentation, metadata, bodies, functions.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "tensor/tensor.h"

namespace hone::onnx {

/// A message with a name, encoded.
struct NamedMessage {
  std::string name;
  std::string_view bytes;  // of the model that was read, or of ModelFile::keep()
};

struct FileNode {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<NamedMessage> attributes;
  std::string rest;  // fields that are none of these, as they stand
};

class ModelFile {
 public:
  /// The model's bytes stay as long as this or a copy lives. Throws Error when they are no ONNX model.
  explicit ModelFile(Blob bytes);
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  std::vector<FileNode> nodes;
  std::vector<NamedMessage> initializers, inputs, outputs, value_types;
  std::map<std::string, int64_t, std::less<>> opsets;  // by domain; the default one is ""
  int64_t ir_version = 0;

  bool has_functions() const { return has_functions_; }

  /// Memory for what is added, as long as the file's.
  std::string_view keep(std::string bytes);
  void add_initializer(const std::string& name, const Tensor& tensor);
  /// Without it, nothing happens.
  void remove_initializer(std::string_view name);
  /// A name that no tensor of the graph and no earlier answer has, made of `base`.
  std::string unique_tensor_name(const std::string& base);
  std::string unique_node_name(const std::string& base);

  /// The model as it is now. Throws Error beyond 2 GiB, which is as long as a protobuf message may be.
  std::string encode() const;

 private:
  void read_model();
  void read_graph(std::string_view bytes);
  std::string encode_graph() const;

  Blob bytes_;
  std::deque<std::string> kept_;
  std::string model_rest_, graph_rest_;
  bool has_functions_ = false;
  std::set<std::string, std::less<>> tensor_names_, node_names_;
};

/// TensorProto; elements of fewer than 8 bits are packed.
std::string encode_tensor(const std::string& name, const Tensor& tensor);
std::string encode_attribute(const std::string& name, int64_t value);
/// A node of the default domain.
FileNode make_node(ModelFile& file, std::string name, std::string op_type, std::vector<std::string> inputs,
                   std::vector<std::string> outputs, const std::vector<std::pair<std::string, int64_t>>& attributes);

/// A ValueInfoProto of a tensor with another element type.
std::string with_element_type(std::string_view value, DType type);

/// Whether the tensor lies in another file.
bool is_external(const NamedMessage& tensor);
/// Whether the attribute is a body.
bool is_graph(const NamedMessage& attribute);
/// The nodes of a node's bodies, which nobody here changes.
std::vector<FileNode> nodes_in_bodies(const FileNode& node);

}  // namespace hone::onnx
