// SPDX-License-Identifier: Apache-2.0
//
// For devices without arithmetic in f16 and bf16: such tensors become f32 inside the network and keep their type at its edge.
// Results are those of a network that rounds less often. A value that was rounded on purpose, by a Cast to a half type whose
// result is only cast back, stays rounded.
#include <unordered_map>

#include "ops/ops.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
bool is_half(const Value* value) { return value != nullptr && is_half(value->type.dtype); }

class Widener {
 public:
  explicit Widener(Graph& graph) : graph_(graph), nodes_(graph.nodes()) {}

  void run() {
    for (Value* input : graph_.inputs())
      if (is_half(input)) widen(input, nodes_.empty() ? nullptr : nodes_.front());
    for (size_t i = 0; i < nodes_.size(); ++i) visit(nodes_[i], i + 1 < nodes_.size() ? nodes_[i + 1] : nullptr);
    narrow_outputs();
  }

 private:
  void visit(Node* node, Node* next) {
    if (!node->bodies.empty() || node->op->custom != nullptr) {  // operators of programs read what the model says
      narrow_inputs(node);
    } else {
      if (!node->is(ops::cast)) widen_constants(node);
      else if (is_half(node->output()) && !keeps_rounding(*node))
        node->attrs.set("to", std::string(name_of(DType::f32)));
      const std::vector<DType> before = types(*node);
      graph_.infer(node);
      for (size_t i = 0; i < before.size(); ++i)
        if (is_half(before[i]) && !is_half(node->outputs[i])) stands_for_[node->outputs[i]] = before[i];
    }
    for (Value* output : node->outputs)
      if (is_half(output)) widen(output, next);
  }

  static std::vector<DType> types(const Node& node) {
    std::vector<DType> result;
    for (const Value* output : node.outputs) result.push_back(output->type.dtype);
    return result;
  }

  bool keeps_rounding(const Node& node) const {
    const Value* result = node.output();
    if (graph_.is_output(result)) return true;
    if (is_half(node.input(0)) || stands_for_.contains(node.input(0))) return false;
    return std::all_of(result->uses.begin(), result->uses.end(),
                       [](const Use& use) { return use.node->is(ops::cast) && !is_half(use.node->output()); });
  }

  Value* cast(Value* value, DType to, Node* before) {
    const Attrs attrs{{"to", std::string(name_of(to))}};
    const std::string name = fmt::format("{} to {}", value->name, name_of(to));
    return (before != nullptr ? graph_.insert(before, ops::cast, {value}, attrs, name)
                              : graph_.add(ops::cast, {value}, attrs, name))
        ->output();
  }

  /// All readers of `value` read it as f32, but for casts, which take any type.
  void widen(Value* value, Node* before) {
    std::vector<Use> uses = value->uses;
    std::erase_if(uses, [](const Use& use) { return use.node->is(ops::cast); });
    if (uses.empty()) return;
    Value* wide = cast(value, DType::f32, before);
    stands_for_[wide] = value->type.dtype;
    for (const Use& use : uses) graph_.set_input(use.node, use.index, wide);
  }

  void widen_constants(Node* node) {
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      Value* value = node->inputs[i];
      if (!is_half(value) || !value->is_constant()) continue;
      Value*& wide = constants_[value];
      if (wide == nullptr) wide = cast(value, DType::f32, node);
      graph_.set_input(node, i, wide);
    }
  }

  /// What the node reads is as it was: its bodies know no other types.
  void narrow_inputs(Node* node) {
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (const auto at = stands_for_.find(node->inputs[i]); at != stands_for_.end())
        graph_.set_input(node, i, cast(node->inputs[i], at->second, node));
  }

  void narrow_outputs() {
    std::vector<Value*> outputs = graph_.outputs();
    for (Value*& output : outputs) {
      const auto at = stands_for_.find(output);
      if (at == stands_for_.end()) continue;
      const std::string name = output->name;
      output->name = graph_.unique_name(name + "_f32");
      output = cast(output, at->second, nullptr);
      output->name = name;
    }
    graph_.set_outputs(std::move(outputs));
  }

  Graph& graph_;
  const std::vector<Node*> nodes_;
  std::unordered_map<const Value*, DType> stands_for_;  // f32 values, and the types they had
  std::unordered_map<const Value*, Value*> constants_;  // half ones, and their f32 twins
};

}  // namespace

void widen_half(Graph& graph, const PassContext& context) {
  if (context.widen_half) Widener(graph).run();
}

}  // namespace hone::passes
