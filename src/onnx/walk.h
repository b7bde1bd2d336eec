// SPDX-License-Identifier: Apache-2.0
//
// The walk over a model that importer.cpp describes, and its lenient form, which survey.cpp adds.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "onnx/importer.h"
#include "onnx/parse_log.h"
#include "onnx/proto.h"
#include "onnx/rules.h"
#include "onnx/scope.h"
#include "onnx/survey.h"
#include "onnx/symbols.h"
#include "onnx/tensor_data.h"

namespace hone::onnx {

/// Attributes of the enclosing function call, by name; what a reference attribute takes its value from.
using AttributeValues = std::map<std::string_view, const AttributeProto*>;

/// Where nodes are being imported.
struct Place {
  Scope& scope;
  const OpsetVersions& opsets;
  std::string prefix;                           // of node and value names: the path of function calls
  const AttributeValues* attributes = nullptr;  // null outside functions
};

/// Counts while it lives.
class Level {
 public:
  explicit Level(int& depth) : depth_(depth) { ++depth_; }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int& depth_;
};

class Importer {
 public:
  Importer(const ModelProto& model, ModelData& data, const Logger& log, const OperatorList& operators)
      : model_(model), data_(data), log_(log), rules_(model, operators) {}

  Graph run();
  /// The same as far as it goes, without outputs.
  void survey(const SurveyOptions& options, Survey& found);
  /// Those that run() read.
  std::vector<OnnxNode> take_nodes() { return std::move(nodes_); }

 private:
  void check_opset() const;
  void add_input(Place& place, const ValueProto& input);
  TensorType type_of(const ValueProto& value);
  void add_initializers(Place& place, const GraphProto& graph);
  void add_outputs(Place& place, const GraphProto& graph);
  void import_nodes(Place& place, const std::vector<NodeProto>& nodes);
  void import_node(Place& place, const NodeProto& node, const std::string& name);
  void survey_input(Place& place, const ValueProto& input);
  void survey_weight(Place& place, const TensorProto& tensor, bool reads);
  void survey_node(Place& place, const NodeProto& node, const std::string& name);
  void leave_open(Place& place, std::string_view name);
  void inline_branch(Place& place, const NodeProto& node, const GraphProto& branch);
  void call_function(Place& place, const NodeProto& node, const FunctionProto& function, const std::string& name);
  std::vector<Value*> find_operands(Place& place, const NodeProto& node);
  Attrs import_attributes(const Place& place, const NodeProto& node,
                          std::map<std::string_view, const GraphProto*>& graphs);
  std::vector<std::unique_ptr<Graph>> import_bodies(Place& place,
                                                    const std::map<std::string_view, const GraphProto*>& graphs,
                                                    const std::string& name, const std::vector<TensorType>* formals,
                                                    std::vector<Value*>& operands);
  void define_results(Place& place, const NodeProto& node, const std::vector<Value*>& values);
  std::string unique_node_name(std::string name);

  const ModelProto& model_;
  ModelData& data_;
  ParseLog log_;
  Rules rules_;
  Symbols symbols_;
  std::unordered_set<std::string> node_names_;
  std::unordered_map<std::string, int> name_counters_;
  std::vector<const FunctionProto*> calls_;
  size_t node_count_ = 0;
  int depth_ = 0;  // of bodies and calls
  std::vector<OnnxNode> nodes_;
  int body_depth_ = 0;
  Survey* found_ = nullptr;  // null: the first problem ends the import
  std::map<std::string_view, const ValueProto*> declared_;
  std::set<std::string_view> unknown_;  // tensors that a problem left without a type
};

}  // namespace hone::onnx
