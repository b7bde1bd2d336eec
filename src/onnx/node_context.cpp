// SPDX-License-Identifier: Apache-2.0
//
// Adding the IR nodes of one ONNX node: the first carries its name, further ones a numbered one, all its origin.
#include "onnx/node_context.h"

#include "ops/all.h"

namespace hone::onnx {

NodeContext::NodeContext(Scope& scope, int opset, std::string name, std::vector<Value*> inputs,
                         std::vector<std::string_view> outputs, Attrs attrs, std::vector<std::unique_ptr<Graph>> bodies)
    : scope_(scope),
      opset_(opset),
      name_(std::move(name)),
      inputs_(std::move(inputs)),
      output_names_(std::move(outputs)),
      attrs_(std::move(attrs)),
      bodies_(std::move(bodies)) {
  while (!output_names_.empty() && output_names_.back().empty()) output_names_.pop_back();
  HONE_CHECK(!output_names_.empty(), "the node has no output");
  results_.resize(output_names_.size(), nullptr);
}

const std::vector<Value*>& NodeContext::run(const OpDef& op, const OnnxRule& rule) {
  if (rule.import != nullptr) {
    rule.import(*this);
  } else {
    const Node* node = add(op, inputs_, attrs_, outputs());
    HONE_CHECK(node->outputs.size() >= results_.size(), "{} has {} outputs but {} are named", op.name,
               node->outputs.size(), results_.size());
    for (size_t i = 0; i < results_.size(); ++i) set_output(i, node->outputs[i]);
  }
  for (size_t i = 0; i < results_.size(); ++i)
    HONE_CHECK(!output_used(i) || results_[i] != nullptr, "output {} ('{}') does not exist", i, output_names_[i]);
  return results_;
}

const OpDef& NodeContext::op(std::string_view name) const {
  const OpDef* found = find_op(name);
  HONE_ASSERT(found != nullptr, "there is no operator {}", name);
  return *found;
}

Node* NodeContext::add(std::string_view op_name, std::vector<Value*> inputs, Attrs attrs, size_t outputs) {
  return add(op(op_name), std::move(inputs), std::move(attrs), outputs);
}

Node* NodeContext::add(const OpDef& def, std::vector<Value*> inputs, Attrs attrs, size_t outputs) {
  std::string name = added_ == 0 ? name_ : fmt::format("{}_{}", name_, added_ + 1);
  ++added_;
  std::vector<std::unique_ptr<Graph>> bodies;
  if (def.traits.has_bodies) bodies = std::move(bodies_);
  Node* node = graph().add(def, std::move(inputs), std::move(attrs), std::move(name), outputs, std::move(bodies));
  node->origin = {name_};
  return node;
}

void NodeContext::set_output(size_t i, Value* value) {
  if (i < results_.size()) results_[i] = value;
}

}  // namespace hone::onnx
