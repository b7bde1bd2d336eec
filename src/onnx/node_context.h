// SPDX-License-Identifier: Apache-2.0
//
// NodeContext: the ImportContext of one ONNX node, which its rule fills with IR nodes and results.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/op.h"
#include "onnx/scope.h"

namespace hone::onnx {

class NodeContext : public ImportContext {
 public:
  NodeContext(Scope& scope, int opset, std::string name, std::vector<Value*> inputs,
              std::vector<std::string_view> outputs, Attrs attrs, std::vector<std::unique_ptr<Graph>> bodies);

  /// The rule's result: one value per output; checks that the used ones are there.
  const std::vector<Value*>& run(const OpDef& op, const OnnxRule& rule);

  Graph& graph() override { return scope_.graph(); }
  int opset() const override { return opset_; }
  std::string_view node_name() const override { return name_; }
  size_t inputs() const override { return inputs_.size(); }
  Value* input(size_t i) const override { return i < inputs_.size() ? inputs_[i] : nullptr; }
  Value* named(std::string_view name) override { return scope_.find(name).value_or(nullptr); }
  size_t outputs() const override { return output_names_.size(); }
  bool output_used(size_t i) const override { return i < output_names_.size() && !output_names_[i].empty(); }
  Attrs& attrs() override { return attrs_; }
  std::vector<std::unique_ptr<Graph>>& bodies() override { return bodies_; }
  const OpDef& op(std::string_view name) const override;
  Node* add(std::string_view op, std::vector<Value*> inputs, Attrs attrs, size_t outputs) override;
  void set_output(size_t i, Value* value) override;

 private:
  Node* add(const OpDef& def, std::vector<Value*> inputs, Attrs attrs, size_t outputs);

  Scope& scope_;
  int opset_;
  std::string name_;
  std::vector<Value*> inputs_;
  std::vector<std::string_view> output_names_;
  Attrs attrs_;
  std::vector<std::unique_ptr<Graph>> bodies_;
  std::vector<Value*> results_;
  int added_ = 0;
};

}  // namespace hone::onnx
