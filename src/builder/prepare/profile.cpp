// SPDX-License-Identifier: Apache-2.0
//
// Shape profiles.
#include "builder/prepare/profile.h"

#include <algorithm>

#include "base/text.h"

namespace hone {
namespace {

void check_names(const Graph& graph, const ProfileOptions& options) {
  std::vector<std::string_view> names;
  for (const Value* input : graph.inputs()) names.push_back(input->name);
  for (const auto& [name, range] : options)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error(fmt::format("a shape is given for '{}', which is no input of the model", name),
                  fmt::format("its inputs are {}; the nearest is '{}'", join(names, ", "), nearest(name, names)));
}

ShapeRange default_range(const Value& input) {
  Dims dims;
  for (const Dim& dim : input.type.shape) dims.push_back(dim.is_constant() ? dim.value() : 1);
  return {dims, dims, dims};
}

void check_range(const Value& input, const ShapeRange& range) {
  const Shape& shape = input.type.shape;
  for (const Dims* dims : {&range.min, &range.opt, &range.max}) {
    if (dims->size() != shape.rank())
      throw Error(fmt::format("input {} has rank {} ({}), the shape {} has rank {}", input.name, shape.rank(),
                              input.type.text(), join_dims(*dims), dims->size()),
                  "give all of minimum, optimum and maximum with this rank");
    for (size_t axis = 0; axis < dims->size(); ++axis) {
      if ((*dims)[axis] < 0)
        throw Error(
            fmt::format("axis {} of the shape {} for input {} is negative", axis, join_dims(*dims), input.name));
      if (shape[axis].is_constant() && shape[axis].value() != (*dims)[axis])
        throw Error(fmt::format("axis {} of input {} is {} in the model, the shape {} says {}", axis, input.name,
                                shape[axis].text(), join_dims(*dims), (*dims)[axis]));
    }
  }
  for (size_t axis = 0; axis < shape.rank(); ++axis)
    if (range.min[axis] > range.opt[axis] || range.opt[axis] > range.max[axis])
      throw Error(fmt::format("axis {} of input {}: minimum {}, optimum {} and maximum {} are not in this order", axis,
                              input.name, range.min[axis], range.opt[axis], range.max[axis]));
}

void bind(SymbolValues& symbols, const Dim& dim, int64_t value, const Value& input, size_t axis) {
  const auto [at, fresh] = symbols.try_emplace(dim.text(), value);
  if (!fresh && at->second != value)
    throw Error(fmt::format("axis {} of input {} is {}, but another input says that {} is {}", axis, input.name, value,
                            dim.text(), at->second),
                "inputs that share a symbol must agree");
}

}  // namespace

ProfilePoints profile_points(const Graph& graph, const ProfileOptions& options, const Listeners& listeners) {
  check_names(graph, options);
  ProfilePoints points;
  for (const Value* input : graph.inputs()) {
    const Shape& shape = input->type.shape;
    const auto given = options.find(input->name);
    if (given != options.end()) check_range(*input, given->second);
    if (shape.is_static()) continue;
    const ShapeRange range = given != options.end() ? given->second : default_range(*input);
    if (given == options.end()) listeners.tell(&BuildListener::shape_assumed, *input, range.opt);
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis].is_constant()) continue;
      bind(points.min, shape[axis], range.min[axis], *input, axis);
      bind(points.opt, shape[axis], range.opt[axis], *input, axis);
      bind(points.max, shape[axis], range.max[axis], *input, axis);
    }
    points.ranges.push_back({input->name, range.min, range.opt, range.max});
  }
  return points;
}

}  // namespace hone
