// SPDX-License-Identifier: Apache-2.0
//
// The canonical text of a region: what two equal problems have in common. Values are numbered in order of appearance;
// names, origins and the contents of weights are left out, small constants (axes, bounds, scalars) stay.
#include <unordered_map>

#include "base/text.h"
#include "ir/custom.h"

namespace hone {
namespace {

/// Another version of an operator of a program, or another file that it comes from, is another operator.
std::string name_of(const OpDef& op) {
  if (op.custom == nullptr) return std::string(op.name);
  return fmt::format("{}@{}{}", op.name, op.custom->version, op.custom->hash.empty() ? "" : "." + op.custom->hash);
}

/// Those that decide how long a node takes.
Attrs timed_attrs(const Node& node) {
  if (!node.op->traits.timed_without_reals) return node.attrs;
  Attrs kept;
  for (const auto& [name, value] : node.attrs)
    if (!std::holds_alternative<double>(value)) kept.set(name, value);
  return kept;
}

}  // namespace

std::string structure_key(const Graph& graph) {
  std::unordered_map<const Value*, int> numbers;
  const auto number = [&](const Value* value) {
    return numbers.try_emplace(value, static_cast<int>(numbers.size())).first->second;
  };
  const auto operand = [&](const Value* value) -> std::string {
    if (value == nullptr) return "_";
    if (!value->is_constant()) return fmt::format("%{}", number(value));
    const Tensor& tensor = *value->constant;
    const bool is_data =
        tensor.size() > 16 || (is_float(tensor.dtype()) && tensor.size() > 1) || tensor.dtype() == DType::string;
    if (is_data) return "const " + tensor.type().text();
    std::vector<std::string> values;
    for (int64_t i = 0; i < tensor.size(); ++i)
      values.push_back(is_float(tensor.dtype()) ? exact(tensor.real(i)) : std::to_string(tensor.integer(i)));
    return fmt::format("const {}{{{}}}", tensor.type().text(), join(values, ","));
  };
  std::string key = "(";
  for (const Value* input : graph.inputs()) key += fmt::format("%{}:{} ", number(input), input->type.text());
  key += ")";
  for (const Node* node : graph.nodes()) {
    key += "; ";
    for (const Value* output : node->outputs) key += fmt::format("%{} ", number(output));
    key += fmt::format("= {}(", name_of(*node->op));
    for (const Value* input : node->inputs) key += operand(input) + ", ";
    key += ")";
    if (const Attrs attrs = timed_attrs(*node); !attrs.empty()) key += "{" + attrs.print() + "}";
    for (const auto& body : node->bodies) key += " {" + structure_key(*body) + "}";
  }
  key += " ->";
  for (const Value* output : graph.outputs()) key += " " + operand(output);
  return key;
}

}  // namespace hone
