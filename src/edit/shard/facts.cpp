// SPDX-License-Identifier: Apache-2.0
#include "edit/shard/facts.h"

#include <algorithm>

namespace hone::edit {
namespace {

onnx::AttributeProto parsed(const Attribute& attribute) {
  return onnx::parse_attribute(std::as_bytes(std::span(attribute.bytes.data(), attribute.bytes.size())));
}

}  // namespace

Facts::Facts(const Model& model) : graph_(model.graph), index_(model.graph), survey_(survey(model, WeightData::small)) {
  for (const Node& each : graph_.nodes) {
    const bool product = each.op_type == "MatMul" || each.op_type == "Gemm" || each.op_type == "Conv";
    const bool reads = std::ranges::any_of(each.inputs, [&](const std::string& name) { return is_computed(name); });
    const bool weights = product && std::ranges::any_of(each.inputs, [&](const std::string& name) {
                           return !name.empty() && weight(name).has_value();
                         });
    if (reads || weights) computed_.insert(each.outputs.begin(), each.outputs.end());
  }
}

const Shape* Facts::shape(const std::string& tensor) const {
  const auto found = survey_.values.find(tensor);
  if (found == survey_.values.end() || !found->second->type.ranked) return nullptr;
  return &found->second->type.shape;
}

const Tensor* Facts::constant(const std::string& tensor) const {
  const auto found = survey_.values.find(tensor);
  const bool known = found != survey_.values.end() && found->second->is_constant();
  return known && !weight(tensor) ? &*found->second->constant : nullptr;
}

std::optional<std::vector<int64_t>> Facts::integers(const std::string& tensor) const {
  const auto found = survey_.values.find(tensor);
  if (found == survey_.values.end()) return std::nullopt;
  if (found->second->symbolic) {
    std::vector<int64_t> numbers;
    for (const Dim& dim : *found->second->symbolic) {
      if (!dim.is_constant()) return std::nullopt;
      numbers.push_back(dim.value());
    }
    return numbers;
  }
  if (!found->second->is_constant() || !is_integer(found->second->type.dtype)) return std::nullopt;
  return found->second->constant->integers();
}

int64_t Facts::attribute(const Node& node, std::string_view name, int64_t fallback) const {
  const Attribute* found = node.attribute(name);
  return found == nullptr ? fallback : parsed(*found).integer;
}

double Facts::real(const Node& node, std::string_view name, double fallback) const {
  const Attribute* found = node.attribute(name);
  return found == nullptr ? fallback : parsed(*found).real;
}

std::optional<std::vector<int64_t>> Facts::attributes(const Node& node, std::string_view name) const {
  const Attribute* found = node.attribute(name);
  return found == nullptr ? std::nullopt : std::optional(parsed(*found).integers);
}

std::optional<Facts::Source> Facts::weight(const std::string& tensor) const {
  std::string name = tensor;
  Source source;
  for (int steps = 0; steps < 8; ++steps) {
    if (const auto at = index_.weight.find(name); at != index_.weight.end()) {
      source.weight = &graph_.weights[at->second];
      return index_.inputs.contains(name) ? std::nullopt : std::optional(source);
    }
    const auto producer = index_.producer.find(name);
    if (producer == index_.producer.end()) return std::nullopt;
    const Node& maker = graph_.nodes[producer->second];
    const bool turns = maker.op_type == "Transpose" && attributes(maker, "perm") == std::vector<int64_t>{1, 0};
    if (maker.op_type != "Identity" && !turns) return std::nullopt;
    source.transposed ^= turns;
    name = maker.inputs.at(0);
  }
  return std::nullopt;
}

}  // namespace hone::edit
