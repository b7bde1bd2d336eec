// SPDX-License-Identifier: Apache-2.0

#include "tuner/few_rows.h"

#include <algorithm>
#include <unordered_map>

#include "ir/op.h"

namespace hone {
namespace {

constexpr int64_t kFewEntries = 4, kFewElements = 1 << 20;  // what is evaluated as it is

/// Operators whose results for an entry depend on that entry alone, whatever their attributes.
constexpr std::string_view kByEntry[] = {"Conv",
                                         "ConvTranspose",
                                         "MaxPool",
                                         "AveragePool",
                                         "GlobalAveragePool",
                                         "GlobalMaxPool",
                                         "InstanceNormalization",
                                         "GroupNormalization",
                                         "ScaledDotProductAttention",
                                         "Reformat"};
/// Those that do as long as they do not work along the first axis.
constexpr std::string_view kByAxis[] = {"Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "Concat"};

bool is_one_of(const Node& node, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), node.op_name()) != names.end();
}

bool keeps_entries_apart(const Node& node) {
  if (!node.bodies.empty() || node.inputs.empty()) return false;
  const size_t rank = node.output()->type.shape.rank();
  for (const Value* input : node.inputs)
    if (input != nullptr && !input->is_constant() && input->type.shape.rank() != rank && node.op->is_pointwise())
      return false;
  if (node.op->is_pointwise() || is_one_of(node, kByEntry)) return true;
  if (is_one_of(node, kByAxis)) {
    const int64_t axis = node.attrs.integer("axis");
    return axis > 0 || (axis < 0 && axis + static_cast<int64_t>(rank) > 0);
  }
  if (node.op_name() == "Linear") return rank >= 2;
  if (node.op_name() == "MatMul") return rank >= 3 && node.input(0)->type.shape.rank() == rank;
  return node.op_name() == "Transpose" && node.attrs.integers("perm")[0] == 0;
}

/// A constant with an entry for each of the batch would have to be cut as well. Weights have none.
bool has_constant_entries(const Node& node, int64_t count) {
  constexpr std::string_view kWithOperands[] = {"ScaledDotProductAttention", "Concat", "MatMul"};
  return (node.op->is_pointwise() || is_one_of(node, kWithOperands)) &&
         std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Value* input) {
           return input != nullptr && input->is_constant() &&
                  input->type.shape.rank() == node.output()->type.shape.rank() && input->type.shape.rank() > 0 &&
                  input->type.shape[0] == Dim(count) && count != 1;
         });
}

}  // namespace

std::optional<Graph> with_two_entries(const Graph& region) {
  if (region.inputs().empty() || region.inputs()[0]->type.shape.rank() == 0) return std::nullopt;
  const int64_t count = region.inputs()[0]->type.shape[0].value();
  int64_t elements = 0;
  const auto fits = [&](const Value* value) {
    const Shape& shape = value->type.shape;
    if (!value->type.ranked || is_object(value->type.dtype) || shape.rank() == 0) return false;
    int64_t own = 1;
    for (const Dim& dim : shape) own *= dim.value();
    elements += own;
    return shape[0] == Dim(count);
  };
  const auto all_fit = [&](std::span<Value* const> values) { return std::all_of(values.begin(), values.end(), fits); };
  if (count <= kFewEntries || !all_fit(region.inputs()) || !all_fit(region.outputs()) || elements < kFewElements)
    return std::nullopt;
  Graph few;
  std::unordered_map<const Value*, Value*> map;
  for (const Value* input : region.inputs()) {
    TensorType type = input->type;
    Dims dims = type.shape.values();
    dims[0] = 2;
    type.shape = Shape(dims);
    map[input] = few.add_input(input->name, type);
  }
  for (const Node* node : region.nodes()) {
    if (!keeps_entries_apart(*node) || has_constant_entries(*node, count)) return std::nullopt;
    std::vector<Value*> inputs;
    for (const Value* input : node->inputs) {
      if (input == nullptr) {
        inputs.push_back(nullptr);
        continue;
      }
      Value*& made = map[input];
      if (made == nullptr && !input->is_constant()) return std::nullopt;
      if (made == nullptr) made = few.add_constant(*input->constant);
      inputs.push_back(made);
    }
    Node* made = few.add(*node->op, std::move(inputs), node->attrs, node->name, node->outputs.size());
    for (size_t i = 0; i < node->outputs.size(); ++i) map[node->outputs[i]] = made->outputs[i];
  }
  std::vector<Value*> outputs;
  for (const Value* output : region.outputs()) outputs.push_back(map.at(output));
  few.set_outputs(std::move(outputs));
  return few;
}

}  // namespace hone
