// SPDX-License-Identifier: Apache-2.0
//
// The text form gives every value a name of its own. Values that had none, or one that another value has, carry a mark while they are in
// the text, so that the network comes back with the names that it had.
#include "builder/refit/network.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "ir/op.h"
#include "ir/text.h"
#include "ops/all.h"

namespace hone {
namespace {

constexpr char kMark = '\x01';
/// Constants of more elements that the import computed are weights in another form; smaller ones are epsilons and the like.
constexpr int64_t kSmall = 16;

void each_value(Graph& graph, const std::function<void(Value&)>& visit) {
  for (Value* input : graph.inputs()) visit(*input);
  for (Node* node : graph.nodes()) {
    for (Value* input : node->inputs)
      if (input != nullptr && input->is_constant()) visit(*input);
    for (Value* output : node->outputs) visit(*output);
  }
  for (Value* output : graph.outputs())
    if (output->is_constant()) visit(*output);
}

void each_body(Graph& graph, const std::function<void(Graph&)>& visit) {
  for (Node* node : graph.nodes())
    for (const auto& body : node->bodies) visit(*body);
}

void mark_names(Graph& graph) {
  std::map<std::string, const Value*, std::less<>> taken;
  int number = 0;
  each_value(graph, [&](Value& value) {
    if (value.name.starts_with(kMark)) return;
    const auto [at, fresh] = taken.try_emplace(value.name, &value);
    if (value.name.empty() || (!fresh && at->second != &value))
      value.name = fmt::format("{}{}{}{}", kMark, number++, kMark, value.name);
  });
  each_body(graph, mark_names);
}

void unmark_names(Graph& graph) {
  each_value(graph, [](Value& value) {
    if (!value.name.starts_with(kMark)) return;
    const size_t end = value.name.find(kMark, 1);
    value.name = end == std::string::npos ? std::string() : value.name.substr(end + 1);
  });
  each_body(graph, unmark_names);
}

/// What is known of values around a body goes into it as the importer's does.
void tell_bodies(Graph& graph) {
  for (Node* node : graph.nodes()) {
    if (node->bodies.empty()) continue;
    const auto captures = static_cast<size_t>(node->attrs.has("captures") ? node->attrs.integer("captures") : 0);
    for (const auto& body : node->bodies) {
      const std::vector<Value*>& inputs = body->inputs();
      for (size_t i = 1; i <= std::min({captures, inputs.size(), node->inputs.size()}); ++i)
        if (const Value* outside = node->inputs[node->inputs.size() - i]; outside != nullptr)
          inputs[inputs.size() - i]->symbolic = outside->symbolic;
      body->infer_all();
      tell_bodies(*body);
    }
    graph.infer(node);
  }
}

void add_named(const Graph& graph, std::vector<NamedConstant>& list) {
  std::unordered_set<const Value*> seen;
  for (const Node* node : graph.nodes()) {
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      Value* input = node->inputs[i];
      if (input == nullptr || !input->is_constant() || input->name.empty()) continue;
      if (seen.insert(input).second) list.push_back({input, node, i});
    }
    for (const auto& body : node->bodies) add_named(*body, list);
  }
}

/// Names that stand for one tensor, wherever they are used.
std::set<std::string> weight_names(const Graph& graph) {
  std::map<std::string, const Tensor*> tensors;
  std::set<std::string> names, ambiguous;
  for (const NamedConstant& each : named_constants(graph)) {
    const Tensor& tensor = *each.value->constant;
    if (decides_structure(tensor.dtype())) continue;
    const auto [at, fresh] = tensors.try_emplace(each.value->name, &tensor);
    if (!fresh && (at->second->type() != tensor.type() || !std::ranges::equal(at->second->bytes(), tensor.bytes())))
      ambiguous.insert(each.value->name);
    names.insert(each.value->name);
  }
  for (const std::string& name : ambiguous) names.erase(name);
  return names;
}

/// Memory of zeros, which takes none until somebody writes there.
Tensor zeros(const TensorType& type) {
  const Dims dims = type.shape.values();
  const auto bytes = static_cast<size_t>(byte_size(type.dtype, dims));
  const std::shared_ptr<void> memory(std::calloc(std::max(bytes, size_t{1}), 1), std::free);
  if (memory == nullptr) throw std::bad_alloc();
  return Tensor(type.dtype, dims, Blob(memory, {static_cast<const std::byte*>(memory.get()), bytes}));
}

}  // namespace

bool decides_structure(DType dtype) {
  return dtype == DType::i64 || dtype == DType::boolean || dtype == DType::string || is_object(dtype);
}

std::string_view weight_role(const Node& node, size_t operand) {
  const WeightRoles roles = node.op->traits.weights;
  if (roles == WeightRoles::kernel_and_bias) return operand < 2 ? "Kernel" : "Bias";
  if (roles == WeightRoles::scale_and_shift && operand == 1) return "Scale";
  if (roles == WeightRoles::scale_and_shift && operand == 2) return "Shift";
  return "Constant";
}

std::vector<NamedConstant> named_constants(const Graph& graph) {
  std::vector<NamedConstant> list;
  add_named(graph, list);
  return list;
}

void keep_network(const Graph& graph, RefitPart& part) {
  const std::set<std::string> names = weight_names(graph);
  Graph named = graph.clone();
  mark_names(named);
  std::vector<Tensor> tensors;
  std::vector<const Value*> owners;
  part.graph = print_with_data(named, tensors, &owners);
  if (std::ranges::any_of(tensors, [](const Tensor& tensor) { return is_object(tensor.dtype()); })) {
    part.graph.clear();  // a constant sequence, which a plan cannot hold: such a network is refitted with its model
    return;
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Value* owner = owners[i];
    RefitConstant constant{.type = tensors[i].type(), .data = tensors[i]};
    if (owner != nullptr && !decides_structure(constant.type.dtype)) {
      const std::string& name = owner->name;
      constant.name = name.starts_with(kMark) ? name.substr(name.find(kMark, 1) + 1) : name;
      if (!names.contains(constant.name)) constant.name.clear();
      constant.derived = constant.name.empty() && tensors[i].size() > kSmall;
    }
    part.constants.push_back(std::move(constant));
  }
}

KeptNetwork kept_network(const Plan& plan, const OperatorList& operators) {
  if (!plan.refit)
    throw Error("the engine was built with fixed weights", "build it with --refit to make its weights replaceable");
  const RefitPart& part = *plan.refit;
  if (part.graph.empty())
    throw Error("the plan does not keep its network", "refit it with the model (--refitFromOnnx), or build it again");
  KeptNetwork kept;
  std::vector<Tensor> tensors;
  for (const RefitConstant& constant : part.constants) {
    if (!constant.data && constant.name.empty())
      throw Error(
          "the plan was written without weights, and the import computed with one of them, so that giving it by "
          "its name is not enough",
          "refit it with the model: --refitFromOnnx, hone_plan_create_from_refit()");
    if (!constant.data) kept.missing.insert(constant.name);
    tensors.push_back(constant.data ? *constant.data : zeros(constant.type));
  }
  kept.graph = with_note([] { return std::string("reading the network that the plan keeps"); },
                         [&] { return parse_with_data(part.graph, find_among(operators), tensors); });
  kept.graph.name = plan.meta.model;
  unmark_names(kept.graph);
  tell_bodies(kept.graph);
  return kept;
}

}  // namespace hone
