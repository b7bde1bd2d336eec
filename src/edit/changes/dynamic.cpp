// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/dynamic.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "edit/changes/sizes_from_inputs.h"
#include "edit/infer.h"
#include "edit/names.h"

namespace hone::edit {
namespace {

Value& find_input(Model& model, const std::string& input) {
  for (Value& value : model.graph.inputs)
    if (value.name == input) return value;
  std::vector<std::string> names;
  for (const Value& value : model.graph.inputs) names.push_back(value.name);
  throw UnknownName(fmt::format("{} is no input of the model", input),
                    fmt::format("its inputs: {}", fmt::join(names, ", ")));
}

/// Where -1 has to stand for the numbers of elements to agree whatever the open size is; nothing: nowhere, or it is right already.
std::optional<size_t> place_of_rest(const Shape& data, const std::vector<int64_t>& shape) {
  if (data.is_static() || std::ranges::find(shape, -1) != shape.end()) return std::nullopt;
  std::vector<Dim> sizes;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && i >= data.rank()) return std::nullopt;
    sizes.push_back(shape[i] == 0 ? data[i] : Dim(shape[i]));
  }
  if (Shape(sizes).elements() == data.elements()) return std::nullopt;
  // The first entry that is the open size at some other number of it: what the other entries leave over is a multiple of the symbol.
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dim others(1);
    for (size_t j = 0; j < sizes.size(); ++j)
      if (j != i) others = others * sizes[j];
    if (others.is_constant() && others.value() == 0) continue;
    const Dim rest = floor_divide(data.elements(), others);
    if (rest * others == data.elements() && !rest.is_constant()) return i;
  }
  return std::nullopt;
}

/// Mends the first Reshape whose constant shape does not fit any more; its name.
std::optional<std::string> mend_reshape(Model& model) {
  const onnx::Survey found = survey(model, WeightData::small);
  const auto value = [&](const std::string& name) -> const hone::Value* {
    const auto at = found.values.find(name);
    return at == found.values.end() ? nullptr : at->second;
  };
  for (size_t i = 0; i < model.graph.nodes.size(); ++i) {
    Node& node = model.graph.nodes[i];
    if (node.op_type != "Reshape" || !node.domain.empty() || node.inputs.size() < 2) continue;
    const hone::Value *data = value(node.inputs[0]), *shape = value(node.inputs[1]);
    if (data == nullptr || shape == nullptr || !shape->is_constant() || !data->type.ranked) continue;
    std::vector<int64_t> sizes = shape->constant->integers();
    const std::optional<size_t> rest = place_of_rest(data->type.shape, sizes);
    if (!rest) continue;
    sizes[*rest] = -1;
    std::unordered_set<std::string> taken = tensor_names(model.graph);
    const Index index(model.graph);
    const bool alone = index.consumers.at(node.inputs[1]).size() == 1 && index.weight.contains(node.inputs[1]);
    const std::string name = alone ? node.inputs[1] : fresh_name(taken, node.inputs[1] + "_open");
    Weight made = make_weight(model, name, Tensor::of<int64_t>({static_cast<int64_t>(sizes.size())}, sizes));
    if (alone) model.graph.weights[index.weight.at(name)] = std::move(made);
    else model.graph.weights.push_back(std::move(made));
    node.inputs[1] = name;
    return label_of(node, i);
  }
  return std::nullopt;
}

}  // namespace

void set_input_sizes(Model& model, const std::string& input, const std::vector<Size>& sizes) {
  Value& value = find_input(model, input);
  ValueType type = type_of(value);
  type.sizes = sizes;
  value = with_type(model, value, type);
}

namespace {

/// Takes the axes' numbers away; what they were.
std::vector<std::optional<int64_t>> open_axes(Model& model, const std::vector<OpenAxis>& axes) {
  std::vector<std::optional<int64_t>> before;
  for (const OpenAxis& each : axes) {
    ValueType type = type_of(find_input(model, each.input));
    if (!type.sizes || each.axis >= type.sizes->size())
      throw Error(fmt::format("input {} has {} axes; there is no axis {}", each.input,
                              type.sizes ? type.sizes->size() : 0, each.axis),
                  "axes are counted from 0");
    before.push_back((*type.sizes)[each.axis].number);
    (*type.sizes)[each.axis] = {std::nullopt, each.name};
    set_input_sizes(model, each.input, *type.sizes);
  }
  return before;
}

}  // namespace

OpenedSizes open_sizes(Model& model, const std::vector<OpenAxis>& axes) {
  OpenedSizes opened;
  const Model closed = model;  // nothing in its bodies changes
  const std::vector<std::optional<int64_t>> before = open_axes(model, axes);
  const auto mend_known = [&] {
    while (const std::optional<std::string> mended = mend_reshape(model)) opened.reshapes.push_back(*mended);
    for (std::string& mended : open_slices(model, closed)) opened.slices.push_back(std::move(mended));
  };
  mend_known();
  SizesFromInputs mender(model, axes, before);
  while (const std::optional<std::string> mended = mender.mend()) {
    opened.others.push_back(*mended);
    mend_known();
  }
  infer_shapes(model, false);
  for (const Value& output : model.graph.outputs) {
    const ValueType found = type_of(output);
    const bool fixed =
        found.sizes && std::ranges::all_of(*found.sizes, [](const Size& size) { return size.number.has_value(); });
    if (fixed && !found.sizes->empty()) opened.fixed.push_back(output.name);
  }
  return opened;
}

}  // namespace hone::edit
