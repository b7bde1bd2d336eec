// SPDX-License-Identifier: Apache-2.0
#include "tools/common/model_shapes.h"

#include <algorithm>

#include "base/text.h"
#include "options/grammar.h"

namespace hone {
namespace {

/// The inputs, for hints.
std::string list_of(std::span<const NetworkTensor> tensors) {
  std::vector<std::string> texts;
  for (const NetworkTensor& tensor : tensors)
    if (tensor.is_input) texts.push_back(fmt::format("{}: {}", tensor.name, tensor.sizes));
  return join(texts, "; ");
}

const NetworkTensor& input_called(std::span<const NetworkTensor> tensors, const std::string& name,
                                  const NamedTexts& typed) {
  std::vector<std::string_view> names;
  for (const NetworkTensor& tensor : tensors) {
    if (!tensor.is_input) continue;
    if (tensor.name == name) return tensor;
    names.push_back(tensor.name);
  }
  throw Error(fmt::format("Invalid tensor names found in --shapes flag. There is no input called {}{}", name,
                          caret_under_shape(typed, name)),
              fmt::format("did you mean {}? The inputs are {}", nearest(name, names), list_of(tensors)));
}

void check_shape(const NetworkTensor& input, const Dims& dims, const NamedTexts& typed) {
  const std::string& name = input.name;
  const std::string hint = fmt::format("input {} is [{}]", name, input.sizes);
  const auto refuse = [&](std::string message, std::optional<size_t> axis) {
    throw Error(std::move(message) + caret_under_shape(typed, name, axis), hint);
  };
  const size_t rank = input.dims.size();
  if (dims.size() != rank)
    refuse(fmt::format("the shape {} for input {} has {} sizes, the model has {}", join_dims(dims), name, dims.size(),
                       rank),
           std::min(dims.size(), rank));
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (const int64_t fixed = input.dims[axis]; fixed >= 0 && fixed != dims[axis])
      refuse(fmt::format("{}the size {} of axis {} of input {} contradicts the model, which has {}",
                         input.is_static() ? "Static model does not take explicit shapes since the shape of inference "
                                             "tensors is fixed in the model: "
                                           : "",
                         dims[axis], axis, name, fixed),
             axis);
    else if (dims[axis] < 0)
      refuse(fmt::format("the size {} of axis {} of input {} is negative", dims[axis], axis, name), axis);
}

Dims ones(const Dims& known) {
  Dims dims = known;
  std::ranges::replace(dims, -1, 1);
  return dims;
}

/// 1 for every dynamic size, or the nearest that the profile allows.
Dims smallest(const NetworkTensor& input, const PlanProfile& profile) {
  Dims dims = ones(input.dims);
  for (const InputRange& range : profile.ranges)
    for (size_t axis = 0; range.input == input.name && axis < dims.size(); ++axis)
      dims[axis] = std::clamp(dims[axis], range.min[axis], range.max[axis]);
  return dims;
}

}  // namespace

std::vector<ProfileOptions> model_profiles(std::span<const NetworkTensor> model,
                                           const std::vector<ProfileOptions>& asked, const NamedTexts& typed,
                                           const Logger& log) {
  std::vector<ProfileOptions> profiles = asked;
  if (profiles.empty()) profiles.emplace_back();
  for (size_t index = 0; index < profiles.size(); ++index) {
    for (const auto& [name, range] : profiles[index])
      for (const Dims* dims : {&range.min, &range.opt, &range.max})
        check_shape(input_called(model, name, typed), *dims, typed);
    for (const NetworkTensor& input : model) {
      if (!input.is_input) continue;
      const std::string& name = input.name;
      if (input.is_static()) {
        profiles[index].erase(name);
        continue;
      }
      const auto [entry, missing] = profiles[index].try_emplace(name);
      if (missing) {
        const Dims dims = ones(input.dims);
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

InputShapes engine_shapes(std::span<const NetworkTensor> engine, const PlanProfile& profile, const ShapeMap& asked,
                          const NamedTexts& typed, bool built, const Logger& log) {
  for (const auto& [name, dims] : asked) check_shape(input_called(engine, name, typed), dims, typed);

  InputShapes shapes;
  for (const NetworkTensor& input : engine) {
    if (!input.is_input || input.is_static()) continue;
    const std::string& name = input.name;
    if (const auto found = asked.find(name); found != asked.end()) {
      shapes[name] = found->second;
      continue;
    }
    const auto range = std::ranges::find(profile.ranges, name, &InputRange::input);
    if (built && range != profile.ranges.end()) {
      shapes[name] = range->opt;
      continue;
    }
    shapes[name] = smallest(input, profile);
    log.warning("Shape missing for input with dynamic shape: {} Automatically setting shape to: {}", name,
                join_dims(shapes[name]));
  }
  return shapes;
}

}  // namespace hone
