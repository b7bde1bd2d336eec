// SPDX-License-Identifier: Apache-2.0
//
// The importer's state while it walks over a model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/utf8.h"
#include "onnx/diagnosis/diagnoser.h"
#include "onnx/importer.h"
#include "onnx/operand_types.h"
#include "onnx/parse_log.h"
#include "onnx/proto.h"
#include "onnx/rules.h"
#include "onnx/scope.h"
#include "onnx/survey.h"
#include "onnx/symbols.h"
#include "onnx/tensor_data.h"

namespace hone::onnx {

inline std::string text_of(std::string_view view) { return valid_utf8(view); }

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
  /// Without a diagnoser the first error ends the import.
  Importer(const ModelProto& model, ModelData& data, const Logger& log, const Rules& rules,
           Diagnoser* diagnoser = nullptr)
      : model_(model), data_(data), log_(log), rules_(rules), diagnoser_(diagnoser) {}

  Graph run();
  /// The same as far as it goes, without outputs; for who diagnoses.
  void survey(Survey& found);
  /// Those that run() read.
  std::vector<OnnxNode> take_nodes() { return std::move(nodes_); }

 private:
  void check_opset();
  /// Runs `body`; where somebody diagnoses, an Error of it is an entry, and the answer false.
  bool attempt(ProblemKind problem, const std::string& where, const std::function<void()>& body);
  void diagnose_node(Place& place, const NodeProto& node, const std::string& name);
  void stand_in(Place& place, std::string_view tensor);
  void stand_in(Place& place, const TensorProto& tensor);
  std::vector<std::string> operand_types(Place& place, const NodeProto& node) const;
  /// Throws for a tensor that could not be read.
  void require_read(const Place& place, std::string_view tensor) const;
  /// The model's inputs and constants.
  void add_edges(Place& place);
  void add_input(Place& place, const ValueProto& input);
  TensorType type_of(const ValueProto& value);
  void add_initializers(Place& place, const GraphProto& graph);
  void add_initializer(Place& place, const TensorProto& tensor);
  void add_outputs(Place& place, const GraphProto& graph);
  void import_nodes(Place& place, const std::vector<NodeProto>& nodes);
  void import_node(Place& place, const NodeProto& node, const std::string& name);
  void inline_branch(Place& place, const NodeProto& node, const GraphProto& branch);
  void call_function(Place& place, const NodeProto& node, const FunctionProto& function, const std::string& name);
  std::vector<Value*> find_operands(Place& place, const NodeProto& node);
  std::optional<TypeFault> type_fault(const NodeProto& node, int opset, const std::vector<Value*>& operands) const;
  Attrs import_attributes(const Place& place, const NodeProto& node,
                          std::map<std::string_view, const GraphProto*>& graphs);
  std::vector<std::unique_ptr<Graph>> import_bodies(Place& place,
                                                    const std::map<std::string_view, const GraphProto*>& graphs,
                                                    const std::string& name, const std::vector<TensorType>* formals,
                                                    std::vector<Value*>& operands);
  void import_body(Place& place, std::string_view attribute, const GraphProto& body,
                   const std::vector<TensorType>* formals, std::vector<Value*>& captured,
                   std::vector<std::unique_ptr<Graph>>& bodies);
  void define_results(Place& place, const NodeProto& node, const std::vector<Value*>& values);
  std::string unique_node_name(std::string name);
  /// Whether the nodes that are being imported are the model's own.
  bool in_model() const { return depth_ == 1; }

  const ModelProto& model_;
  ModelData& data_;
  ParseLog log_;
  const Rules& rules_;
  Diagnoser* diagnoser_;
  ProblemKind stage_ = ProblemKind::graph;  // what an error that comes now is about
  Symbols symbols_;
  std::unordered_set<std::string> node_names_;
  std::unordered_map<std::string, int> name_counters_;
  std::vector<const FunctionProto*> calls_;
  size_t node_count_ = 0;
  int depth_ = 0;  // of bodies and calls
  std::vector<OnnxNode> nodes_;
  int body_depth_ = 0;
};

}  // namespace hone::onnx
