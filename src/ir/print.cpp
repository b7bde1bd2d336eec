// SPDX-License-Identifier: Apache-2.0
//
// The exact text form of a graph:
//
//   (%x: f32[N,8], %mask: bool[N]) {
//     %w = constant f32[2]{0.5, 1}
//     %y, %z = Split(%x, %w) {axis=1} "layer name" [origin_1; origin_2]
//     return %y
//   }
//
// Names are written %name when they are plain words and %"any text" otherwise; a missing operand is `_`.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "base/text.h"
#include "ir/op.h"
#include "ir/text.h"

namespace hone {
namespace {

bool plain(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/';
  });
}

class Printer {
 public:
  explicit Printer(const Graph& graph, std::vector<Tensor>* data, std::vector<const Value*>* owners = nullptr)
      : graph_(graph), data_(data), owners_(owners) {
    for (const Value* value : graph.inputs()) name(value);
    for (const Value* value : graph.outputs()) name(value);
  }

  std::string print(const std::string& indent) {
    std::vector<std::string> inputs;
    for (const Value* value : graph_.inputs()) inputs.push_back(name(value) + ": " + value->type.text());
    text_ = "(" + join(inputs, ", ") + ") {\n";
    for (const Node* node : graph_.nodes()) print_node(*node, indent + "  ");
    std::vector<std::string> outputs;
    for (const Value* value : graph_.outputs()) outputs.push_back(operand(value, indent + "  "));
    text_ += indent + "  return " + join(outputs, ", ") + "\n" + indent + "}";
    return std::move(text_);
  }

 private:
  std::string name(const Value* value) {
    const auto at = names_.find(value);
    if (at != names_.end()) return at->second;
    std::string chosen = value->name;
    if (chosen.empty() || taken_.contains(chosen)) {
      do chosen = std::to_string(next_++);
      while (taken_.contains(chosen));
    }
    taken_.insert(chosen);
    return names_[value] = plain(chosen) ? "%" + chosen : "%" + print_value(AttrValue(chosen));
  }

  std::string operand(const Value* value, const std::string& indent) {
    if (value == nullptr) return "_";
    const bool known = names_.contains(value);
    std::string label = name(value);
    if (value->is_constant() && (!known || !printed_constants_.contains(value))) {
      printed_constants_.insert(value);
      text_ += fmt::format("{}{} = constant {}\n", indent, label, constant_text(*value->constant, value));
    }
    return label;
  }

  std::string constant_text(const Tensor& tensor, const Value* owner = nullptr) {
    const std::string type = tensor.type().text();
    if (data_ != nullptr && tensor.dtype() != DType::string) {
      data_->push_back(tensor);
      if (owners_ != nullptr) owners_->push_back(owner);
      return fmt::format("{}${}", type, data_->size() - 1);
    }
    if (tensor.dtype() == DType::string || tensor.size() > 16) {
      if (tensor.dtype() == DType::string) return type + print_value(AttrValue(tensor.strings()));
      return fmt::format("{}!{}", type, hash_hex(tensor.bytes()));
    }
    std::vector<std::string> values;
    for (int64_t i = 0; i < tensor.size(); ++i)
      values.push_back(tensor.dtype() == DType::f32   ? exact(static_cast<float>(tensor.real(i)))
                       : is_float(tensor.dtype())     ? exact(tensor.real(i))
                       : tensor.dtype() == DType::u64 ? std::to_string(static_cast<uint64_t>(tensor.integer(i)))
                                                      : std::to_string(tensor.integer(i)));
    return type + "{" + join(values, ", ") + "}";
  }

  std::string attrs_text(const Attrs& attrs) {
    std::vector<std::string> parts;
    for (const auto& [attr, value] : attrs) {
      const Tensor* tensor = std::get_if<Tensor>(&value);
      parts.push_back(attr + "=" + (tensor == nullptr ? print_value(value) : "tensor " + constant_text(*tensor)));
    }
    return join(parts, ", ");
  }

  void print_node(const Node& node, const std::string& indent) {
    std::vector<std::string> operands, results;
    for (const Value* input : node.inputs) operands.push_back(operand(input, indent));
    for (const Value* output : node.outputs) results.push_back(name(output));
    std::string line = fmt::format("{}{} = {}({})", indent, join(results, ", "), node.op->name, join(operands, ", "));
    if (!node.attrs.empty()) line += " {" + attrs_text(node.attrs) + "}";
    if (!node.name.empty()) line += " " + print_value(AttrValue(node.name));
    if (!node.origin.empty()) line += " " + print_value(AttrValue(node.origin));
    for (const auto& body : node.bodies) line += " " + Printer(*body, data_, owners_).print(indent);
    text_ += line + "\n";
  }

  const Graph& graph_;
  std::vector<Tensor>* data_;
  std::vector<const Value*>* owners_;
  std::string text_;
  std::unordered_map<const Value*, std::string> names_;
  std::unordered_set<std::string> taken_;
  std::unordered_set<const Value*> printed_constants_;
  int next_ = 0;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph, nullptr).print("") + "\n"; }
std::string print_with_data(const Graph& graph, std::vector<Tensor>& data, std::vector<const Value*>* owners) {
  return Printer(graph, &data, owners).print("") + "\n";
}

}  // namespace hone
