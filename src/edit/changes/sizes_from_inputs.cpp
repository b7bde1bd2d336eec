// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/sizes_from_inputs.h"

#include <algorithm>
#include <limits>

#include "edit/changes/clean.h"
#include "edit/infer.h"
#include "edit/parts.h"

namespace hone::edit {
namespace {

constexpr size_t kMostTries = 400;     // each types the whole model
constexpr size_t kMostSizes = 32;      // of a constant
constexpr int64_t kLargest = 1 << 20;  // of what is doubled
constexpr int64_t kOther = 2;          // sizes often have to be multiples of what they were

struct Sized {
  std::string_view op_type;
  size_t operand;  // that holds sizes
};
constexpr Sized kSized[] = {{"Expand", 1}, {"Tile", 1}, {"ConstantOfShape", 0}, {"Reshape", 1}};

const hone::Value* value_in(const onnx::Survey& found, const Node& node, size_t operand) {
  if (operand >= node.inputs.size()) return nullptr;
  const auto at = found.values.find(node.inputs[operand]);
  return at == found.values.end() ? nullptr : at->second;
}

/// A constant's numbers, of few entries; nothing of what is none.
std::vector<int64_t> numbers_of(const hone::Value* value) {
  if (value == nullptr || !value->is_constant() ||
      (value->constant->dtype() != DType::i64 && value->constant->dtype() != DType::i32) ||
      value->constant->size() > static_cast<int64_t>(kMostSizes))
    return {};
  return value->constant->integers();
}

/// A new weight of these numbers.
std::string add_vector(Model& model, std::unordered_set<std::string>& taken, const std::string& name,
                       const std::vector<int64_t>& values) {
  std::string free = fresh_name(taken, name);
  model.graph.weights.push_back(
      make_weight(model, free, Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values)));
  return free;
}

void append_node(Model& model, const std::string& op_type, std::vector<std::string> inputs, const std::string& output,
                 std::optional<int64_t> axis) {
  Node node;
  node.op_type = op_type;
  node.name = output + "_" + op_type;
  node.inputs = std::move(inputs);
  node.outputs = {output};
  if (axis) node.attributes.push_back(make_attribute(model, "axis", *axis));
  model.graph.nodes.push_back(std::move(node));
}

/// The axes of a Slice, counted from 0; nothing where they are not known.
std::vector<int64_t> axes_of(const onnx::Survey& found, const Node& node, size_t count, size_t rank) {
  std::vector<int64_t> axes(count);
  if (node.inputs.size() > 3 && !node.inputs[3].empty()) axes = numbers_of(value_in(found, node, 3));
  else
    for (size_t i = 0; i < count; ++i) axes[i] = static_cast<int64_t>(i);
  for (int64_t& axis : axes) axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
  if (axes.size() != count ||
      !std::ranges::all_of(axes, [&](int64_t axis) { return axis >= 0 && axis < static_cast<int64_t>(rank); }))
    return {};
  return axes;
}

}  // namespace

std::vector<std::string> open_slices(Model& model, const Model& closed) {
  const auto is_slice = [](const Node& node) { return node.op_type == "Slice" && node.domain.empty(); };
  if (std::ranges::none_of(model.graph.nodes, is_slice)) return {};
  const onnx::Survey was = survey(closed, WeightData::small), now = survey(model, WeightData::small);
  std::unordered_set<std::string> taken = tensor_names(model.graph);
  std::vector<std::string> opened;
  for (size_t i = 0; i < model.graph.nodes.size(); ++i) {
    Node& node = model.graph.nodes[i];
    if (!is_slice(node)) continue;
    const hone::Value *data = value_in(now, node, 0), *old = value_in(was, node, 0);
    if (data == nullptr || old == nullptr || !data->type.ranked || !old->type.ranked) continue;
    const Shape &shape = data->type.shape, &before = old->type.shape;
    std::vector<int64_t> ends = numbers_of(value_in(now, node, 2));
    const std::vector<int64_t> axes = axes_of(now, node, ends.size(), shape.rank());
    bool changed = false;
    for (size_t entry = 0; entry < axes.size(); ++entry) {
      const auto axis = static_cast<size_t>(axes[entry]);
      if (axis >= before.rank() || shape[axis].is_constant() || !before[axis].is_constant() ||
          before[axis].value() != ends[entry])
        continue;
      ends[entry] = std::numeric_limits<int64_t>::max();
      changed = true;
    }
    if (!changed) continue;
    node.inputs[2] = add_vector(model, taken, node.inputs[2] + "_open", ends);
    opened.push_back(label_of(node, i));
  }
  drop_unread_weights(model.graph);
  return opened;
}

SizesFromInputs::SizesFromInputs(Model& model, const std::vector<OpenAxis>& axes,
                                 std::vector<std::optional<int64_t>> before)
    : model_(model), axes_(axes), before_(std::move(before)), unavoidable_(problems(model, 1)) {}

size_t SizesFromInputs::problems(const Model& model, int64_t factor) const {
  Model sized = model;
  sized.graph = deep_copy(model.graph);
  forget_shapes(sized);
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (!before_[i] || *before_[i] > kLargest) continue;
    const auto input = std::ranges::find(sized.graph.inputs, axes_[i].input, &Value::name);
    ValueType type = type_of(*input);
    (*type.sizes)[axes_[i].axis] = {*before_[i] * factor, {}};
    *input = with_type(sized, *input, type);
  }
  const onnx::Survey found = survey(sized, WeightData::small);
  return found.problems.size() + found.skipped.size();
}

std::vector<SizesFromInputs::Place> SizesFromInputs::places() const {
  const onnx::Survey found = survey(model_, WeightData::small);
  std::vector<Place> all;
  for (size_t i = 0; i < model_.graph.nodes.size(); ++i) {
    const Node& node = model_.graph.nodes[i];
    const auto sized = std::ranges::find(kSized, node.op_type, &Sized::op_type);
    if (sized == std::end(kSized) || !node.domain.empty()) continue;
    const std::vector<int64_t> sizes = numbers_of(value_in(found, node, sized->operand));
    for (size_t entry = 0; entry < sizes.size(); ++entry)
      for (size_t axis = 0; axis < axes_.size(); ++axis)
        if (before_[axis] == sizes[entry]) all.push_back({axis, i, sized->operand, entry, sizes});
  }
  return all;
}

/// The input's size as a vector of one, which is computed once.
std::string SizesFromInputs::size_in(Model& tried, const OpenAxis& axis) const {
  std::string name = fmt::format("{}_size_{}", axis.input, axis.axis);
  for (const Node& node : tried.graph.nodes)
    if (!node.outputs.empty() && node.outputs[0] == name) return name;
  std::unordered_set<std::string> taken = tensor_names(tried.graph);
  const std::string shape = fresh_name(taken, axis.input + "_shape");
  const std::string index = add_vector(tried, taken, name + "_axis", {static_cast<int64_t>(axis.axis)});
  append_node(tried, "Shape", {axis.input}, shape, {});
  append_node(tried, "Gather", {shape, index}, name, 0);
  return name;
}

void SizesFromInputs::change(Model& tried, const Place& place) const {
  const std::string base = tried.graph.nodes[place.node].inputs[place.operand];
  const std::string size = size_in(tried, axes_[place.axis]);
  std::unordered_set<std::string> taken = tensor_names(tried.graph);
  const auto at = place.sizes.begin() + static_cast<std::ptrdiff_t>(place.entry);
  std::vector<std::string> parts;
  if (at != place.sizes.begin()) parts.push_back(add_vector(tried, taken, base + "_before", {place.sizes.begin(), at}));
  parts.push_back(size);
  if (at + 1 != place.sizes.end())
    parts.push_back(add_vector(tried, taken, base + "_behind", {at + 1, place.sizes.end()}));
  std::string made = size;
  if (parts.size() > 1) {
    made = fresh_name(taken, base + "_open");
    append_node(tried, "Concat", parts, made, 0);
  }
  tried.graph.nodes[place.node].inputs[place.operand] = made;
  sort_nodes(tried);
  drop_unread_weights(tried.graph);
}

std::optional<std::string> SizesFromInputs::mend() {
  const size_t now = problems(model_, kOther);
  if (now <= unavoidable_) return std::nullopt;
  for (const Place& place : places()) {
    if (++tries_ > kMostTries) return std::nullopt;
    Model tried = model_;
    tried.graph = deep_copy(model_.graph);
    change(tried, place);
    if (problems(tried, kOther) >= now) continue;
    const std::string name = label_of(model_.graph.nodes[place.node], place.node);
    model_ = std::move(tried);
    return name;
  }
  return std::nullopt;
}

}  // namespace hone::edit
