// SPDX-License-Identifier: Apache-2.0

#include "builder/problem.h"

#include <algorithm>
#include <unordered_map>

#include "ir/key.h"
#include "ops/all.h"
#include "ops/ops.h"
#include "ops/sparse_weights.h"
#include "tensor/json.h"

namespace hone {
namespace {

Value* add_shape_data(Graph& graph, const Value& value) {
  std::vector<std::string> texts;
  for (const Dim& dim : *value.symbolic) texts.push_back(dim.text());
  return graph.add(ops::symbolic_constant, {}, {{"values", std::move(texts)}, {"dims", value.type.shape.values()}})
      ->output();
}

bool is_known(const Node& symbolic_constant) {
  const std::vector<std::string>& texts = symbolic_constant.attrs.texts("values");
  return std::all_of(texts.begin(), texts.end(),
                     [](const std::string& text) { return Dim::parse(text).is_constant(); });
}

/// At concrete sizes shape data are ordinary constants.
void fold_shape_data(Graph& graph) {
  if (graph.node_count() < 2) return;
  bool changed = false;
  for (Node* node : graph.nodes()) {
    if (!node->is(ops::symbolic_constant) || graph.is_output(node->output()) || !is_known(*node)) continue;
    graph.replace(node->output(), graph.add_constant(evaluate_node(*node, {})[0]));
    changed = true;
  }
  if (!changed) return;
  graph.erase_dead();
  graph.infer_all();
}

bool take_suffix(std::string& key, std::string_view suffix) {
  if (!key.ends_with(suffix)) return false;
  key.resize(key.size() - suffix.size());
  return true;
}

}  // namespace

Problem make_problem(const Region& region, const SymbolValues& opt, const DeviceInfo& device,
                     const Precision& allowed) {
  Graph graph;
  std::unordered_map<const Value*, Value*> map;
  for (const Value* input : region.inputs) map[input] = graph.add_input(fmt::format("in{}", map.size()), input->type);
  const auto mapped = [&](const Value* value) -> Value* {
    if (value == nullptr) return nullptr;
    Value*& made = map[value];
    if (made == nullptr)
      made = value->is_constant() ? graph.add_constant(*value->constant) : add_shape_data(graph, *value);
    return made;
  };
  for (const Node* node : region.nodes) {
    std::vector<Value*> inputs;
    for (const Value* input : node->inputs) inputs.push_back(mapped(input));
    std::vector<std::unique_ptr<Graph>> bodies;
    for (const auto& body : node->bodies) bodies.push_back(std::make_unique<Graph>(body->clone()));
    Node* made =
        graph.add(*node->op, std::move(inputs), node->attrs, node->name, node->outputs.size(), std::move(bodies));
    for (size_t i = 0; i < node->outputs.size(); ++i) map[node->outputs[i]] = made->outputs[i];
  }
  std::vector<Value*> outputs;
  for (const Value* output : region.outputs) outputs.push_back(map.at(output));
  graph.set_outputs(std::move(outputs));
  Graph concrete = graph.specialize(opt);
  fold_shape_data(concrete);
  return {.region = std::move(concrete),
          .symbolic = std::move(graph),
          .symbols = opt,
          .device = device,
          .allowed = allowed};
}

Problem make_reformat_problem(const TensorType& type, const SymbolValues& opt, const DeviceInfo& device) {
  Graph graph;
  TensorType linear = type;
  linear.layout = Layout::linear;
  Value* input = graph.add_input("in0", linear);
  graph.set_outputs({graph.add(ops::reformat, {input})->output()});
  Graph concrete = graph.specialize(opt);
  return {.region = std::move(concrete), .symbolic = std::move(graph), .symbols = opt, .device = device, .allowed = {}};
}

std::string problem_part(std::string_view line) {
  const Json entry = line.starts_with("{") ? Json::parse(line, nullptr, false) : Json();
  const bool is_entry = entry.is_object() && entry.contains("key") && entry["key"].is_string();
  const std::string key = is_entry ? entry["key"].get<std::string>() : std::string(line);
  return key.substr(0, key.find(" | "));
}

Problem parse_problem(std::string_view line, const DeviceInfo& device) {
  std::string key = problem_part(line);
  Precision allowed;
  allowed.sparse = take_suffix(key, " +2:4");
  allowed.tf32 = !take_suffix(key, " -tf32");
  allowed.i8 = take_suffix(key, " +i8");
  allowed.bf16 = take_suffix(key, " +bf16");
  allowed.f16 = take_suffix(key, " +f16");
  Graph region = parse_key(key, find_op);
  if (allowed.sparse) prune_weights(region);
  Graph symbolic = region.clone();
  return {.region = std::move(region),
          .symbolic = std::move(symbolic),
          .symbols = {},
          .device = device,
          .allowed = allowed};
}

}  // namespace hone
