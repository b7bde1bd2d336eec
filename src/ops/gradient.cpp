// SPDX-License-Identifier: Apache-2.0
//
// Gradient of ai.onnx.preview.training: derivatives of `y` by each of `xs`, `zs` held fixed, as nodes of the same graph.
// Reverse mode: from `y` back to `xs`, each node's rule turns the gradients of its results into those of its operands. Of a
// `y` of several elements it is the derivative of their sum.
#include <algorithm>
#include <map>
#include <set>

#include "base/node_error.h"
#include "ops/derivatives.h"
#include "ops/expansions.h"

namespace hone {
namespace {

using Substitution = std::map<const Value*, Value*>;

/// The part of the graph that leads from the independent values to `y`.
struct Subgraph {
  std::vector<Value*> xs, zs;
  Value* y = nullptr;

  bool is_leaf(const Value* value) const {
    return std::find(xs.begin(), xs.end(), value) != xs.end() || std::find(zs.begin(), zs.end(), value) != zs.end();
  }
  /// Nodes that `y` needs and that depend on one of `from`, in order.
  std::vector<const Node*> between(const Graph& graph, const std::vector<Value*>& from) const {
    std::set<const Value*> depending(from.begin(), from.end());
    const std::set<const Node*> needed = ancestors();
    std::vector<const Node*> result;
    for (const Node* node : graph.nodes()) {
      const auto depends = [&](const Value* value) { return value != nullptr && depending.contains(value); };
      if (!needed.contains(node) || std::none_of(node->inputs.begin(), node->inputs.end(), depends)) continue;
      result.push_back(node);
      for (const Value* output : node->outputs)
        if (!is_leaf(output)) depending.insert(output);
    }
    return result;
  }

 private:
  std::set<const Node*> ancestors() const {
    std::set<const Node*> found;
    std::vector<const Value*> open{y};
    while (!open.empty()) {
      const Value* value = open.back();
      open.pop_back();
      if (value == nullptr || value->producer == nullptr || is_leaf(value) || !found.insert(value->producer).second)
        continue;
      open.insert(open.end(), value->producer->inputs.begin(), value->producer->inputs.end());
    }
    return found;
  }
};

bool differentiable(const Value* value) { return value != nullptr && is_float(value->type.dtype); }

/// The sub-graph once more, computed from other values than the named ones.
Subgraph moved_to(ImportContext& context, const Subgraph& original, Substitution values) {
  std::vector<Value*> leaves = original.xs;
  leaves.insert(leaves.end(), original.zs.begin(), original.zs.end());
  const auto moved = [&](Value* value) {
    const auto at = values.find(value);
    return at == values.end() ? value : at->second;
  };
  for (const Node* node : original.between(context.graph(), leaves)) {
    if (!node->bodies.empty())
      throw Error(fmt::format("node {} ({}) has a body: it is not computed anew for other values of 'xs' and 'zs'",
                              node->name, node->op_name()),
                  "give Gradient the values named in 'xs' and 'zs' as its inputs");
    std::vector<Value*> operands;
    for (Value* operand : node->inputs) operands.push_back(moved(operand));
    const Node* copy = context.add(node->op_name(), std::move(operands), node->attrs, node->outputs.size());
    for (size_t i = 0; i < node->outputs.size(); ++i)
      if (!original.is_leaf(node->outputs[i])) values[node->outputs[i]] = copy->outputs[i];
  }
  Subgraph result{{}, {}, moved(original.y)};
  for (Value* x : original.xs) result.xs.push_back(moved(x));
  for (Value* z : original.zs) result.zs.push_back(moved(z));
  return result;
}

class Reverse {
 public:
  Reverse(ImportContext& context, const Subgraph& part) : context_(context), part_(part) {}

  /// By value of the sub-graph.
  const Substitution& run() {
    const std::vector<const Node*> nodes = part_.between(context_.graph(), part_.xs);
    for (const Node* node : nodes)
      for (const Value* output : node->outputs)
        if (differentiable(output)) on_path_.insert(output);
    on_path_.insert(part_.xs.begin(), part_.xs.end());
    gradients_[part_.y] = ones();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) step_back(**node);
    return gradients_;
  }

 private:
  Value* ones() {
    Value* one = scalar_like(context_, part_.y, 1);
    if (part_.y->type.shape.rank() == 0) return one;
    return made(context_, "Expand", {one, made(context_, "Shape", {part_.y})});
  }

  void step_back(const Node& node) {
    std::vector<Value*> gradients;
    bool any = false;
    for (const Value* output : node.outputs) {
      const auto at = gradients_.find(output);
      gradients.push_back(at == gradients_.end() || part_.is_leaf(output) ? nullptr : at->second);
      any |= gradients.back() != nullptr;
    }
    std::vector<bool> wanted;
    for (const Value* operand : node.inputs) wanted.push_back(differentiable(operand) && on_path_.contains(operand));
    if (!any || std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return;
    with_note([&] { return fmt::format("deriving node {} ({})", node.name, node.op_name()); },
              [&] { derive(node, std::move(gradients), wanted); });
  }

  void derive(const Node& node, std::vector<Value*> gradients, const std::vector<bool>& wanted) {
    const DerivativeRule rule = derivative_of(*node.op);
    if (rule == nullptr)
      throw Error(fmt::format("the operator {} has no derivative here", node.op_name()),
                  "hold what it depends on fixed with 'zs', or write it with other operators");
    for (const Value* value : node.inputs)
      HONE_CHECK(value == nullptr || value->type.ranked, "the rank of '{}' is not known", value->label());
    Backward backward(context_, node, std::move(gradients), wanted);
    rule(backward);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (wanted[i] && backward.given()[i] != nullptr) collect(node.inputs[i], backward.given()[i]);
  }

  void collect(const Value* value, Value* gradient) {
    Value*& sum = gradients_[value];
    sum = sum == nullptr ? gradient : made(context_, "Add", {sum, gradient});
  }

  ImportContext& context_;
  const Subgraph& part_;
  std::set<const Value*> on_path_;
  Substitution gradients_;
};

Value* named(ImportContext& context, std::string_view attribute, const std::string& name) {
  Value* value = context.named(name);
  if (value == nullptr)
    throw Error(
        fmt::format("'{}' of the attribute {} is not defined by any node, input or initialiser", name, attribute),
        "the names are those of tensors of the graph around the node");
  return value;
}

Subgraph named_part(ImportContext& context) {
  const Attrs& attrs = context.attrs();
  Subgraph part;
  for (const std::string& name : attrs.texts("xs")) part.xs.push_back(named(context, "xs", name));
  if (attrs.has("zs"))
    for (const std::string& name : attrs.texts("zs")) part.zs.push_back(named(context, "zs", name));
  part.y = named(context, "y", attrs.text("y"));
  for (size_t i = 0; i < part.xs.size(); ++i)
    HONE_CHECK_AS(TypeError, differentiable(part.xs[i]), "'{}' is {}: only floats have derivatives",
                  attrs.texts("xs")[i], part.xs[i]->type.text());
  HONE_CHECK_AS(TypeError, differentiable(part.y), "'{}' is {}: only floats have derivatives", attrs.text("y"),
                part.y->type.text());
  HONE_CHECK(part.y->producer != nullptr || part.is_leaf(part.y),
             "'{}' is not computed in the graph that the node is in", attrs.text("y"));
  return part;
}

void import_gradient(ImportContext& context) {
  HONE_CHECK_AS(AttributeError, context.attrs().has("xs") && context.attrs().has("y"),
                "Gradient needs the attributes 'xs' and 'y'");
  Subgraph part = named_part(context);
  const size_t count = part.xs.size() + part.zs.size();
  HONE_CHECK(context.inputs() == count, "Gradient has {} inputs where 'xs' and 'zs' name {}", context.inputs(), count);
  HONE_CHECK(context.outputs() <= part.xs.size(), "Gradient has {} outputs where 'xs' names {}", context.outputs(),
             part.xs.size());
  Substitution given;
  bool elsewhere = false;
  for (size_t i = 0; i < count; ++i) {
    Value* name = i < part.xs.size() ? part.xs[i] : part.zs[i - part.xs.size()];
    HONE_CHECK(context.input(i) != nullptr, "input {} of Gradient is missing", i);
    given[name] = context.input(i);
    elsewhere |= name != context.input(i);
  }
  if (elsewhere) part = moved_to(context, part, std::move(given));
  const Substitution gradients = Reverse(context, part).run();
  for (size_t i = 0; i < context.outputs(); ++i) {
    if (!context.output_used(i)) continue;
    const auto at = gradients.find(part.xs[i]);
    Value* zero = at == gradients.end() ? scalar_like(context, part.xs[i], 0) : nullptr;
    Value* shape = zero == nullptr ? nullptr : made(context, "Shape", {part.xs[i]});
    context.set_output(i, made(context, zero == nullptr ? "Identity" : "Expand",
                               zero == nullptr ? std::vector<Value*>{at->second} : std::vector<Value*>{zero, shape}));
  }
}

const OnnxRule kRules[] = {{"Gradient", 1, kEveryLater, import_gradient, "ai.onnx.preview.training"}};

}  // namespace

std::span<const OnnxRule> gradient_rules() { return kRules; }

}  // namespace hone
