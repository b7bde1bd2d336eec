// SPDX-License-Identifier: Apache-2.0
#include "tools/common/model_shapes.h"

#include <algorithm>

#include "base/text.h"
#include "options/grammar.h"

namespace hone {
namespace {

/// The tensors called `names`, for hints.
std::string list_of(const std::vector<std::pair<std::string, Shape>>& inputs) {
  std::vector<std::string> texts;
  for (const auto& [name, shape] : inputs) texts.push_back(fmt::format("{}: {}", name, shape.text()));
  return join(texts, "; ");
}

using Inputs = std::vector<std::pair<std::string, Shape>>;

const Shape& shape_of(const Inputs& inputs, const std::string& name, const NamedTexts& typed) {
  const auto found = std::ranges::find(inputs, name, &Inputs::value_type::first);
  if (found != inputs.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [input, shape] : inputs) names.push_back(input);
  throw Error(fmt::format("Invalid tensor names found in --shapes flag. There is no input called {}{}", name,
                          caret_under_shape(typed, name)),
              fmt::format("did you mean {}? The inputs are {}", nearest(name, names), list_of(inputs)));
}

void check_shape(const std::string& name, const Shape& shape, const Dims& dims, const NamedTexts& typed) {
  const std::string hint = fmt::format("input {} is [{}]", name, shape.text());
  const auto refuse = [&](std::string message, std::optional<size_t> axis) {
    throw Error(std::move(message) + caret_under_shape(typed, name, axis), hint);
  };
  if (dims.size() != shape.rank())
    refuse(fmt::format("the shape {} for input {} has {} sizes, the model has {}", join_dims(dims), name, dims.size(),
                       shape.rank()),
           std::min(dims.size(), shape.rank()));
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (const auto fixed = shape[axis].constant(); fixed && *fixed != dims[axis])
      refuse(fmt::format("{}the size {} of axis {} of input {} contradicts the model, which has {}",
                         shape.is_static() ? "Static model does not take explicit shapes since the shape of inference "
                                             "tensors is fixed in the model: "
                                           : "",
                         dims[axis], axis, name, *fixed),
             axis);
    else if (dims[axis] < 0)
      refuse(fmt::format("the size {} of axis {} of input {} is negative", dims[axis], axis, name), axis);
}

Dims ones(const Shape& shape) {
  Dims dims;
  for (const Dim& dim : shape) dims.push_back(dim.constant().value_or(1));
  return dims;
}

Inputs dynamic_inputs(const Plan& plan) {
  Inputs inputs;
  for (const IoTensor& io : plan.io)
    if (io.is_input && !io.type.shape.is_static()) inputs.emplace_back(io.name, io.type.shape);
  return inputs;
}

/// 1 for every dynamic size, or the nearest that the profile allows.
Dims smallest(const std::string& name, const Shape& shape, const Profile& profile) {
  Dims dims = ones(shape);
  for (const ProfileRange& range : profile.ranges)
    for (size_t axis = 0; range.tensor == name && axis < dims.size(); ++axis)
      dims[axis] = std::clamp(dims[axis], range.min[axis], range.max[axis]);
  return dims;
}

}  // namespace

std::vector<ProfileOptions> model_profiles(const Graph& graph, const std::vector<ProfileOptions>& asked,
                                           const NamedTexts& typed, const Logger& log) {
  Inputs inputs;
  for (const Value* value : graph.inputs()) inputs.emplace_back(value->name, value->type.shape);
  std::vector<ProfileOptions> profiles = asked;
  if (profiles.empty()) profiles.emplace_back();
  for (size_t index = 0; index < profiles.size(); ++index) {
    for (const auto& [name, range] : profiles[index])
      for (const Dims* dims : {&range.min, &range.opt, &range.max})
        check_shape(name, shape_of(inputs, name, typed), *dims, typed);
    for (const auto& [name, shape] : inputs) {
      if (shape.is_static()) {
        profiles[index].erase(name);
        continue;
      }
      const auto [entry, missing] = profiles[index].try_emplace(name);
      if (missing) {
        const Dims dims = ones(shape);
        entry->second = {dims, dims, dims};
        log.warning(
            "Dynamic dimensions required for input: {}, but no shapes were provided. Automatically overriding shape "
            "to: {}",
            name, join_dims(dims));
      }
      log.info("Set shape of input tensor {} for optimization profile {} to: MIN={} OPT={} MAX={}", name, index,
               join_dims(entry->second.min), join_dims(entry->second.opt), join_dims(entry->second.max));
    }
  }
  if (profiles.size() == 1 && profiles[0].empty()) profiles.clear();
  return profiles;
}

std::map<std::string, Dims> engine_shapes(const Plan& plan, size_t profile, const ShapeMap& asked,
                                          const NamedTexts& typed, bool built, const Logger& log) {
  Inputs inputs;
  for (const IoTensor& io : plan.io)
    if (io.is_input) inputs.emplace_back(io.name, io.type.shape);
  for (const auto& [name, dims] : asked) check_shape(name, shape_of(inputs, name, typed), dims, typed);

  std::map<std::string, Dims> shapes;
  for (const auto& [name, shape] : dynamic_inputs(plan)) {
    if (const auto found = asked.find(name); found != asked.end()) {
      shapes[name] = found->second;
      continue;
    }
    if (built) {
      for (const ProfileRange& range : plan.profiles[profile].ranges)
        if (range.tensor == name) shapes[name] = range.opt;
    }
    if (shapes.contains(name)) continue;
    shapes[name] = smallest(name, shape, plan.profiles[profile]);
    log.warning("Shape missing for input with dynamic shape: {} Automatically setting shape to: {}", name,
                join_dims(shapes[name]));
  }
  return shapes;
}

}  // namespace hone
