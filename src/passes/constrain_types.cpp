// SPDX-License-Identifier: Apache-2.0
//
// Types that were asked of single layers and that no kernel computes in: what a layer reads and what it gives is rounded to f16 or
// bf16, and lies in memory so, by a Cast to it and one back. Between layers of one type that become one kernel nothing is rounded,
// as nothing lies in memory there. Runs behind select_precision, which brings layers to a type where that gains.
#include <algorithm>
#include <map>

#include "ops/ops.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

bool is_half(std::optional<DType> type) { return type == DType::f16 || type == DType::bf16; }
bool is_wide(const Value* value) { return value != nullptr && value->type.dtype == DType::f32; }

/// The one for all, or that of each.
std::optional<DType> of_result(const AskedTypes& asked, size_t index) {
  if (asked.results.empty()) return asked.computes;
  return asked.results[asked.results.size() == 1 ? 0 : std::min(index, asked.results.size() - 1)];
}

class Constraining {
 public:
  Constraining(Graph& graph, const PassContext& context) : graph_(graph), asked_(context.asked) {}

  void run() {
    const std::vector<Node*> nodes = graph_.nodes();
    for (size_t at = 0; at < nodes.size(); ++at) {
      Node *node = nodes[at], *next = at + 1 < nodes.size() ? nodes[at + 1] : nullptr;
      const AskedTypes asked = asked_(*node);
      if (node->is(ops::cast) || node->op->traits.has_bodies || node->op->traits.view) continue;
      if (is_half(asked.computes)) round_operands(node, *asked.computes);
      for (size_t i = 0; i < node->outputs.size(); ++i)
        if (const std::optional<DType> type = of_result(asked, i);
            is_half(type) && is_wide(node->outputs[i]) && !stays(*node, *node->outputs[i], *type))
          round_result(*node, node->outputs[i], *type, next);
    }
  }

 private:
  void round_operands(Node* node, DType type) {
    for (size_t i = 0; i < std::min(node->inputs.size(), node->op->traits.keeps_type_from); ++i)
      if (Value* value = node->inputs[i]; is_wide(value) && !has_type(value, type))
        graph_.set_input(node, i, rounded(value, type, *node, node));
  }

  /// Whether it was brought to the type already, or never leaves a kernel that computes in it.
  bool has_type(const Value* value, DType type) const {
    const Node* node = value->producer;
    while (node != nullptr && !node->is(ops::cast) && node->op->hands_on(0) && node->inputs.size() == 1) {
      value = node->input(0);
      node = value->producer;
    }
    if (node == nullptr) return false;
    if (node->is(ops::cast)) return node->input(0)->type.dtype == type;
    return of_result(asked_(*node), value->index) == type && is_inside(*node, *value, type);
  }

  /// Of a node of the model that import or passes made several nodes of, or between a layer and one that its kernel takes in.
  bool is_inside(const Node& node, const Value& value, DType type) const {
    if (graph_.is_output(&value) || value.uses.empty()) return false;
    const auto is_same_layer = [&](const Use& use) {
      return std::ranges::any_of(node.origin, [&](const std::string& name) {
        return std::ranges::find(use.node->origin, name) != use.node->origin.end();
      });
    };
    if (std::ranges::all_of(value.uses, is_same_layer)) return true;
    const Node& reader = *value.uses[0].node;
    return value.uses.size() == 1 && reader.op->is_pointwise() && reader.outputs.size() == 1 &&
           reader.output()->type == value.type && of_result(asked_(reader), 0) == type;
  }

  /// Nothing is left to do: nobody sees the result as it is.
  bool stays(const Node& node, const Value& result, DType type) const {
    const auto rounds = [&](const Use& use) {
      return use.node->is(ops::cast) && use.node->output()->type.dtype == type;
    };
    if (graph_.is_output(&result)) return false;
    return is_inside(node, result, type) || std::ranges::all_of(result.uses, rounds);
  }

  void round_result(const Node& node, Value* result, DType type, Node* next) {
    Value* wide = rounded(result, type, node, next);
    graph_.replace(result, wide);
    graph_.set_input(wide->producer->input(0)->producer, 0, result);
  }

  Value* rounded(Value* value, DType type, const Node& layer, Node* before) {
    Value*& made = made_[{value, type}];
    if (made != nullptr) return made;
    const std::string label = value->name.empty() ? layer.name : value->name;
    Value* narrow = cast(value, type, fmt::format("{} to {}", label, name_of(type)), layer, before);
    return made = cast(narrow, DType::f32, fmt::format("{} from {}", label, name_of(type)), layer, before);
  }
  Value* cast(Value* value, DType to, const std::string& name, const Node& layer, Node* before) {
    const Attrs attrs{{"to", std::string(name_of(to))}};
    Node* node = before != nullptr ? graph_.insert(before, ops::cast, {value}, attrs, name)
                                   : graph_.add(ops::cast, {value}, attrs, name);
    node->origin = layer.origin;
    return node->output();
  }

  Graph& graph_;
  const std::function<AskedTypes(const Node&)>& asked_;
  std::map<std::pair<const Value*, DType>, Value*> made_;
};

}  // namespace

void constrain_types(Graph& graph, const PassContext& context) {
  if (context.asked) Constraining(graph, context).run();
}

}  // namespace hone::passes
