// SPDX-License-Identifier: Apache-2.0
//
// The lenient walk: what cannot be read is noted, what depends on it is skipped, and what the model declares fills the gap.
#include "onnx/survey.h"

#include <algorithm>

#include "base/utf8.h"
#include "onnx/folded_nodes.h"
#include "onnx/walk.h"

namespace hone::onnx {

void Importer::survey(const SurveyOptions& options, Survey& found) {
  found_ = &found;
  for (const ValueProto& value : options.declared) declared_.emplace(value.name, &value);
  Scope scope(found.graph);
  Place place{scope, model_.opsets, ""};
  std::unordered_set<std::string_view> initialized;
  for (const TensorProto& tensor : model_.graph->initializers) initialized.insert(tensor.name);
  for (const ValueProto& input : model_.graph->inputs)
    if (!initialized.contains(input.name)) survey_input(place, input);
  for (const TensorProto& tensor : model_.graph->initializers) survey_weight(place, tensor, options.reads_weights);
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

void Importer::survey_input(Place& place, const ValueProto& input) {
  try {
    add_input(place, input);
  } catch (const Error& error) {
    found_->problems.push_back({"", "", fmt::format("input '{}': {}", input.name, error.message()), error.hint(), {}});
    unknown_.insert(input.name);
  }
}

/// A weight whose data are not there is an input of its type.
void Importer::survey_weight(Place& place, const TensorProto& tensor, bool reads) {
  Graph& graph = place.scope.graph();
  try {
    HONE_CHECK(!tensor.name.empty(), "an initialiser has no name");
    place.scope.define(tensor.name, graph.add_constant(data_.tensor(tensor), valid_utf8(tensor.name)));
    return;
  } catch (const Error& error) {
    if (reads)
      found_->problems.push_back(
          {"", "", fmt::format("initialiser '{}': {}", tensor.name, error.message()), error.hint(), {}});
  }
  const std::optional<DType> dtype = dtype_of_onnx(tensor.data_type);
  const bool sized = std::ranges::all_of(tensor.dims, [](int64_t dim) { return dim >= 0; });
  if (dtype && sized && !tensor.name.empty() && !place.scope.find(tensor.name))
    place.scope.define(tensor.name, graph.add_input(valid_utf8(tensor.name), {*dtype, Shape(std::span(tensor.dims))}));
  else leave_open(place, tensor.name);
}

void Importer::survey_node(Place& place, const NodeProto& node, const std::string& name) {
  std::set<std::string_view> read;
  add_reads(node, read);
  const bool skipped = std::ranges::any_of(read, [&](std::string_view each) { return unknown_.contains(each); });
  if (skipped) {
    found_->skipped.push_back(name);
  } else {
    try {
      return import_node(place, node, name);
    } catch (const Error& error) {
      Problem problem{name,
                      node.domain.empty() ? valid_utf8(node.op_type) : fmt::format("{}.{}", node.domain, node.op_type),
                      error.message(),
                      error.hint(),
                      {}};
      for (const std::string_view input : node.inputs) {
        const std::optional<Value*> value = place.scope.find(input);
        problem.operands.push_back(value && *value != nullptr ? (*value)->type.text() : "?");
      }
      found_->problems.push_back(std::move(problem));
    }
  }
  for (const std::string_view output : node.outputs) leave_open(place, output);
}

/// What the model declares of a tensor holds where it is all there is.
void Importer::leave_open(Place& place, std::string_view name) {
  if (name.empty() || place.scope.find(name)) return;
  const auto at = declared_.find(name);
  try {
    if (at != declared_.end()) return add_input(place, *at->second);
  } catch (const Error&) {  // no type that an input could have: as if it were not declared
  }
  unknown_.insert(name);
}

Survey survey_onnx(const Blob& model, const SurveyOptions& options) {
  const ModelProto proto = parse_model(model.bytes());
  ModelData data(std::make_shared<const Blob>(model), options.directory);
  Survey found;
  Importer(proto, data, Logger([](Severity, std::string_view) {}), options.operators).survey(options, found);
  return found;
}

}  // namespace hone::onnx
