// SPDX-License-Identifier: Apache-2.0

#include "tuner/few_rows.h"

#include <algorithm>
#include <unordered_map>

#include "ir/op.h"

namespace hone {
namespace {

constexpr int64_t kFewEntries = 4, kFewElements = 1 << 20;  // what is evaluated as it is

bool keeps_apart(const Node& node, size_t operand) {
  if (node.op->is_pointwise()) return node.input(operand)->type.shape.rank() == node.output()->type.shape.rank();
  return node.op->traits.entries_apart != nullptr && node.op->traits.entries_apart(node, operand);
}

/// Constants are taken whole, so none may have an entry for each of the batch. Weights have none.
bool keeps_entries_apart(const Node& node, int64_t count) {
  if (!node.bodies.empty() || node.inputs.empty()) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* input = node.input(i);
    if (input == nullptr) continue;
    const Shape& shape = input->type.shape;
    const bool apart = keeps_apart(node, i);
    if (input->is_constant() ? apart && shape.rank() > 0 && shape[0] == Dim(count) : !apart) return false;
  }
  return true;
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
    if (!keeps_entries_apart(*node, count)) return std::nullopt;
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
