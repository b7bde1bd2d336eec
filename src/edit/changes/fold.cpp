// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/fold.h"

#include <algorithm>

#include "edit/changes/clean.h"
#include "edit/names.h"
#include "ir/op.h"
#include "onnx/tensor_data.h"
#include "ops/ops.h"

namespace hone::edit {
namespace {

bool stays_by_default(const Node& node) {
  return node.op_type == "QuantizeLinear" || node.op_type == "DequantizeLinear" ||
         node.op_type == "DynamicQuantizeLinear";
}

Tensor integers_of(DType dtype, Dims dims, const SymbolicData& data) {
  TensorBuilder builder(dtype, std::move(dims));
  visit(dtype, [&]<typename T>() {
    const std::span<T> out = builder.data<T>();
    for (size_t i = 0; i < out.size(); ++i)
      if constexpr (std::is_arithmetic_v<T>) out[i] = static_cast<T>(data[i].value());
  });
  return builder.finish();
}

/// What the graph of a survey holds that no run is needed for.
class Evaluation {
 public:
  Evaluation(const hone::Graph& graph, const FoldRules& rules) : rules_(rules) {
    for (const hone::Node* node : graph.nodes()) evaluate(*node);
  }
  const Tensor* of(const hone::Value* value) const {
    if (value->is_constant()) return &*value->constant;
    const auto at = known_.find(value);
    return at == known_.end() ? nullptr : &at->second;
  }

 private:
  void evaluate(const hone::Node& node) {
    bool known = true;
    for (const hone::Value* output : node.outputs) known &= follows_from_shapes(output);
    if (known || !may_run(node)) return;
    std::vector<const Tensor*> operands;
    for (const hone::Value* input : node.inputs) operands.push_back(input == nullptr ? nullptr : of(input));
    try {
      std::vector<Tensor> results = evaluate_node(node, std::move(operands));
      for (size_t i = 0; i < results.size(); ++i)
        if (!is_container(results[i].dtype())) known_.insert_or_assign(node.outputs[i], std::move(results[i]));
    } catch (const Error&) {  // data that the operator refuses are the run's affair
    }
  }
  bool follows_from_shapes(const hone::Value* value) {
    if (of(value) != nullptr) return true;
    if (!rules_.shapes || value->symbolic == nullptr || !value->type.shape.is_static()) return false;
    const SymbolicData& data = *value->symbolic;
    if (!std::ranges::all_of(data, [](const Dim& size) { return size.is_constant(); })) return false;
    known_.emplace(value, integers_of(value->type.dtype, value->type.shape.values(), data));
    return true;
  }
  bool may_run(const hone::Node& node) const {
    const Traits& traits = node.op->traits;
    if (traits.random || traits.has_bodies || node.op->custom != nullptr) return false;
    for (const hone::Value* input : node.inputs)
      if (input != nullptr && of(input) == nullptr) return false;
    for (const hone::Value* output : node.outputs) {
      if (output->type.element != nullptr) return false;
      if (rules_.most_bytes && output->type.shape.is_static() &&
          byte_size(output->type.dtype, output->type.shape.values()) > *rules_.most_bytes)
        return false;
    }
    return true;
  }

  const FoldRules& rules_;
  std::map<const hone::Value*, Tensor> known_;
};

/// The tensor that a Constant node holds; nothing where it is of a kind that no weight can be.
std::optional<Weight> weight_of_constant(Model& model, const Node& node) {
  if (node.attributes.size() != 1 || node.outputs.size() != 1) return std::nullopt;
  const Attribute& attribute = node.attributes[0];
  const onnx::AttributeProto proto =
      onnx::parse_attribute(std::as_bytes(std::span(attribute.bytes.data(), attribute.bytes.size())));
  if (!proto.reference.empty()) return std::nullopt;
  if (attribute.name == "value") {
    std::string_view bytes;
    read_fields(attribute.bytes, [&](uint32_t field, std::string_view payload) {
      if (field == 5) bytes = payload;
      return true;
    });
    Weight weight = read_weight(bytes);
    weight.name = node.outputs[0];
    return weight;
  }
  const auto count = [](const auto& list) { return Dims{static_cast<int64_t>(list.size())}; };
  const std::string& name = node.outputs[0];
  if (attribute.name == "value_int") return make_weight(model, name, Tensor::scalar<int64_t>(proto.integer));
  if (attribute.name == "value_float") return make_weight(model, name, Tensor::scalar(static_cast<float>(proto.real)));
  if (attribute.name == "value_ints")
    return make_weight(model, name, Tensor::of<int64_t>(count(proto.integers), proto.integers));
  if (attribute.name == "value_floats") {
    const std::vector<float> reals(proto.reals.begin(), proto.reals.end());
    return make_weight(model, name, Tensor::of<float>(count(reals), reals));
  }
  return std::nullopt;
}

size_t constants_to_weights(Model& model, Graph& graph) {
  const Index index(graph);
  std::vector<bool> gone(graph.nodes.size(), false);
  size_t count = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (Attribute& attribute : graph.nodes[i].attributes)
      for (const auto& body : attribute.bodies) count += constants_to_weights(model, *body);
    const Node& node = graph.nodes[i];
    if (node.op_type != "Constant" || !node.domain.empty() || node.outputs.empty() ||
        index.outputs.contains(node.outputs[0]))
      continue;
    std::optional<Weight> weight = weight_of_constant(model, node);
    if (!weight) continue;
    graph.weights.push_back(std::move(*weight));
    gone[i] = true;
    ++count;
  }
  remove_nodes(graph, gone);
  return count;
}

}  // namespace

size_t constants_to_weights(Model& model) { return constants_to_weights(model, model.graph); }

FoldPass fold_constants(Model& model, const FoldRules& rules) {
  FoldPass pass{model.graph.nodes.size(), 0};
  const onnx::Survey found = survey(model, WeightData::all);
  const Evaluation evaluation(found.graph, rules);
  const Index index(model.graph);
  const auto known = [&](const std::string& name) -> const Tensor* {
    const auto at = found.values.find(name);
    return at == found.values.end() ? nullptr : evaluation.of(at->second);
  };
  std::vector<bool> folds(model.graph.nodes.size(), false);
  for (size_t i = 0; i < folds.size(); ++i) {
    const Node& node = model.graph.nodes[i];
    if (rules.excludes ? rules.excludes(node) : stays_by_default(node)) continue;
    bool all = !node.outputs.empty();
    for (const std::string& name : node.outputs) {
      if (name.empty()) continue;
      const Tensor* tensor = index.outputs.contains(name) ? nullptr : known(name);
      all &= tensor != nullptr && (!rules.most_bytes || tensor->dtype() == DType::string ||
                                   static_cast<int64_t>(tensor->bytes().size()) <= *rules.most_bytes);
    }
    folds[i] = all;
    pass.folded += all ? 1 : 0;
  }
  for (size_t i = 0; i < folds.size(); ++i) {
    if (!folds[i]) continue;
    for (const std::string& name : model.graph.nodes[i].outputs) {
      if (name.empty()) continue;
      const std::vector<size_t>& readers =
          index.consumers.contains(name) ? index.consumers.at(name) : std::vector<size_t>();
      if (std::ranges::any_of(readers, [&](size_t reader) { return !folds[reader]; }))
        model.graph.weights.push_back(make_weight(model, name, *known(name)));
    }
  }
  remove_nodes(model.graph, folds);
  return pass;
}

}  // namespace hone::edit
