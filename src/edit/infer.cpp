// SPDX-License-Identifier: Apache-2.0
#include "edit/infer.h"

#include <algorithm>
#include <cstring>

#include "edit/names.h"

namespace hone::edit {
namespace {

constexpr int64_t kSmall = 64 << 10;

Blob blob_of(const Rope& rope) {
  AlignedBuffer buffer(rope.size());
  std::byte* at = buffer.data();
  for (const std::span<const std::byte> piece : rope.pieces()) {
    if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
  return Blob::own(std::move(buffer));
}

/// The model with large weights' elements left out.
Rope encode_small(const Model& model, std::deque<std::string>& stubs) {
  Model light;
  light.ir_version = model.ir_version;
  light.opsets = model.opsets;
  light.functions = model.functions;
  light.graph = model.graph;
  for (Weight& weight : light.graph.weights)
    if (element_bytes(weight) > kSmall) weight.bytes = stubs.emplace_back(message_without_elements(weight));
  return encode(light);
}

Size size_of(const onnx::Survey& survey, const Dim& dim) {
  if (dim.is_constant()) return {dim.value(), {}};
  const std::string text = dim.text();
  if (const auto at = survey.parameters.find(text); at != survey.parameters.end()) return {std::nullopt, at->second};
  std::set<std::string> symbols;
  dim.collect_symbols(symbols);
  const bool named = std::ranges::all_of(symbols, [&](const std::string& symbol) {
    const auto at = survey.parameters.find(symbol);
    return at != survey.parameters.end() && at->second == symbol;
  });
  return {std::nullopt, named ? text : ""};
}

}  // namespace

onnx::Survey survey(const Model& model, WeightData data, bool missing_data_is_a_problem) {
  onnx::SurveyOptions options;
  options.directory = model.directory;
  options.reads_weights = missing_data_is_a_problem;
  std::deque<std::string> stubs;
  return onnx::survey_onnx(blob_of(data == WeightData::all ? encode(model) : encode_small(model, stubs)), options);
}

ValueType type_of(const onnx::Survey& survey, const TensorType& type) {
  if (type.element != nullptr) return {0, {}, false};
  ValueType known{onnx::onnx_type_of(type.dtype), {}, true};
  if (!type.ranked) return known;
  known.sizes.emplace();
  for (const Dim& dim : type.shape) known.sizes->push_back(size_of(survey, dim));
  return known;
}

KnownTypes::KnownTypes(const Model& model) {
  for (const std::vector<Value>* values : {&model.graph.inputs, &model.graph.values, &model.graph.outputs})
    for (const Value& value : *values) declared_.emplace(value.name, type_of(value));
  const onnx::Survey found = survey(model, WeightData::small);
  for (const auto& [name, value] : found.values) inferred_.emplace(name, type_of(found, value->type));
  for (const Weight& weight : model.graph.weights) inferred_.insert_or_assign(weight.name, type_of(weight));
}

std::optional<ValueType> KnownTypes::of(const std::string& tensor) const {
  if (const auto at = inferred_.find(tensor); at != inferred_.end() && at->second.is_tensor) return at->second;
  if (const auto at = declared_.find(tensor); at != declared_.end()) return at->second;
  return std::nullopt;
}

size_t infer_shapes(Model& model, bool values) {
  const KnownTypes known(model);
  size_t changed = 0;
  const auto update = [&](Value& value) {
    const std::optional<ValueType> type = known.of(value.name);
    if (!type || !type->is_tensor || !known.inferred(value.name) || *type == type_of(value)) return;
    value = with_type(model, value, *type);
    ++changed;
  };
  for (Value& output : model.graph.outputs) update(output);
  for (Value& value : model.graph.values) update(value);
  if (!values) return changed;
  std::unordered_set<std::string> listed;
  for (const std::vector<Value>* list : {&model.graph.inputs, &model.graph.values, &model.graph.outputs})
    for (const Value& value : *list) listed.insert(value.name);
  for (const Node& node : model.graph.nodes)
    for (const std::string& name : node.outputs)
      if (!name.empty() && known.inferred(name) && listed.insert(name).second) {
        const std::optional<ValueType> type = known.of(name);
        if (!type || !type->is_tensor) continue;
        model.graph.values.push_back(with_type(model, {name, {}}, *type));
        ++changed;
      }
  return changed;
}

void forget_shapes(Model& model) {
  model.graph.values.clear();
  for (Value& output : model.graph.outputs) {
    ValueType type = type_of(output);
    if (!type.is_tensor) continue;
    type.sizes.reset();
    output = with_type(model, output, type);
  }
}

}  // namespace hone::edit
