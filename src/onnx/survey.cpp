// SPDX-License-Identifier: Apache-2.0
//
// A survey is a diagnosis that keeps the graph.
#include "onnx/survey.h"

#include <algorithm>

#include "onnx/walk.h"

namespace hone::onnx {
namespace {

std::string operator_name(const std::string& domain, const std::string& type) {
  return domain.empty() ? type : fmt::format("{}.{}", domain, type);
}

/// Of what is wrong inside a node the node is told of.
Problem problem_of(Diagnostic&& entry, const Diagnosis& diagnosis) {
  Problem problem{entry.name, operator_name(entry.domain, entry.operator_type), std::move(entry.text),
                  std::move(entry.hint), std::move(entry.operands)};
  if (entry.node < 0) return problem;
  const Diagnosis::Node& node = diagnosis.nodes[static_cast<size_t>(entry.node)];
  if (node.name == entry.name) return problem;
  problem.message = fmt::format("{} ({}) in it: {}", problem.node, problem.op_type, problem.message);
  problem.node = node.name;
  problem.op_type = operator_name(node.domain, node.operator_type);
  return problem;
}

}  // namespace

void Importer::survey(Survey& found) {
  Scope scope(found.graph);
  Place place{scope, model_.opsets, ""};
  add_edges(place);
  import_nodes(place, model_.graph->nodes);
  const auto know = [&](std::string_view name) {
    if (const std::optional<Value*> value = scope.find(name); value && *value != nullptr)
      found.values.emplace(std::string(name), *value);
  };
  for (const ValueProto& input : model_.graph->inputs) know(input.name);
  for (const TensorProto& tensor : model_.graph->initializers) know(tensor.name);
  for (const NodeProto& node : model_.graph->nodes) std::ranges::for_each(node.outputs, know);
  found.parameters = symbols_.parameters();
}

Survey survey_onnx(const Blob& model, const SurveyOptions& options) {
  const ModelProto proto = parse_model(model.bytes());
  const Rules rules(proto, options.operators);
  Diagnoser diagnoser(proto, rules);
  if (!options.reads_weights) diagnoser.ignore_weights();
  ModelData data(std::make_shared<const Blob>(model), options.directory);
  Survey found;
  Importer(proto, data, silent_logger(), rules, &diagnoser).survey(found);
  Diagnosis diagnosis = diagnoser.take();
  for (Diagnostic& entry : diagnosis.entries)
    if (entry.problem == ProblemKind::not_judged) {
      const std::string& node = diagnosis.nodes[static_cast<size_t>(entry.node)].name;
      if (std::ranges::find(found.skipped, node) == found.skipped.end()) found.skipped.push_back(node);
    } else if (entry.severity == Severity::error) {
      found.problems.push_back(problem_of(std::move(entry), diagnosis));
    } else if (entry.problem == ProblemKind::type) {
      found.forbidden.push_back(problem_of(std::move(entry), diagnosis));
    }
  return found;
}

}  // namespace hone::onnx
