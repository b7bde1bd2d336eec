// SPDX-License-Identifier: Apache-2.0
//
// Shapes that were left out. Which members of min/opt/max are filled is decided per flag, not per tensor; see the table:
//   opt -> min, max;  min -> opt, max;  max -> min, opt;  min+opt -> max = opt;  opt+max -> min = opt;  min+max -> opt = max.
#include <set>

#include "base/error.h"
#include "options/defaults.h"
#include "options/grammar.h"

namespace hone {
namespace {

/// Fills `target` from `source` where it was not given at all.
void broadcast(std::optional<ShapeMap>& target, std::string_view target_name, const std::optional<ShapeMap>& source,
               std::string_view source_name, std::vector<std::string>& warnings) {
  if (target || !source) return;
  target = source;
  for (const auto& [tensor, dims] : *source)
    warnings.push_back(
        fmt::format("{}Shapes is being broadcasted to {}Shapes for tensor {}", source_name, target_name, tensor));
}

void fill(ProfileShapes& shapes, std::vector<std::string>& warnings) {
  if (shapes.opt) {
    broadcast(shapes.min, "min", shapes.opt, "opt", warnings);
    broadcast(shapes.max, "max", shapes.opt, "opt", warnings);
  } else if (shapes.max) {
    broadcast(shapes.opt, "opt", shapes.max, "max", warnings);
    broadcast(shapes.min, "min", shapes.max, "max", warnings);
  } else {
    broadcast(shapes.opt, "opt", shapes.min, "min", warnings);
    broadcast(shapes.max, "max", shapes.min, "min", warnings);
  }
}

const Dims& entry(const std::optional<ShapeMap>& shapes, const std::string& tensor, std::string_view flag,
                  int profile) {
  if (shapes)
    if (const auto found = shapes->find(tensor); found != shapes->end()) return found->second;
  throw Error(
      fmt::format("{} does not name the tensor {}, another shape flag of profile {} does", flag, tensor, profile),
      fmt::format("add {}:<shape> to {}", tensor, flag));
}

ProfileOptions ranges(const ProfileShapes& shapes, int profile, const NamedTexts& typed) {
  std::set<std::string> tensors;
  for (const auto* member : {&shapes.min, &shapes.opt, &shapes.max})
    if (*member)
      for (const auto& [tensor, dims] : **member) tensors.insert(tensor);
  ProfileOptions result;
  for (const std::string& tensor : tensors) {
    ShapeRange range{entry(shapes.min, tensor, "--minShapes", profile),
                     entry(shapes.opt, tensor, "--optShapes", profile),
                     entry(shapes.max, tensor, "--maxShapes", profile)};
    const auto refuse = [&](std::string_view what, std::optional<size_t> axis = std::nullopt) {
      throw Error(fmt::format("shapes of tensor {} in profile {}: {} (min {}, opt {}, max {}){}", tensor, profile, what,
                              join_dims(range.min), join_dims(range.opt), join_dims(range.max),
                              caret_under_shape(typed, tensor, axis)),
                  "every size must rise or stay the same from --minShapes over --optShapes to --maxShapes");
    };
    if (range.min.size() != range.opt.size() || range.opt.size() != range.max.size()) refuse("ranks differ");
    for (size_t i = 0; i < range.min.size(); ++i)
      if (range.min[i] > range.opt[i] || range.opt[i] > range.max[i])
        refuse(fmt::format("sizes of axis {} are out of order", i), i);
    result[tensor] = std::move(range);
  }
  return result;
}

}  // namespace

void complete_shapes(Options& options, std::vector<std::string>& warnings) {
  ToolOptions& tool = options.tool;
  std::vector<ProfileOptions> profiles;
  for (auto& [index, shapes] : tool.profiles) {
    if (index != static_cast<int>(profiles.size()))
      throw Error(fmt::format("Found invalid or missing shape spec at profile index {}", profiles.size()),
                  "number the profiles from 0 without gaps");
    fill(shapes, warnings);
    profiles.push_back(ranges(shapes, index, tool.shape_arguments));
  }
  if (profiles.size() > 1 && (tool.use_profile < 0 || tool.use_profile >= static_cast<int>(profiles.size())))
    throw Error(
        fmt::format("Selected profile index {} exceeds the number of profiles, {}", tool.use_profile, profiles.size()),
        "--useProfile counts from 0");

  if (!profiles.empty()) {
    const size_t used = std::min(static_cast<size_t>(std::max(tool.use_profile, 0)), profiles.size() - 1);
    const ShapeMap asked = tool.shapes;
    for (const auto& [tensor, range] : profiles[used]) tool.shapes.try_emplace(tensor, range.opt);
    for (const auto& [tensor, dims] : asked)
      for (ProfileOptions& profile : profiles) profile.try_emplace(tensor, ShapeRange{dims, dims, dims});
  } else if (!tool.shapes.empty()) {
    ProfileOptions profile;
    for (const auto& [tensor, dims] : tool.shapes) profile[tensor] = {dims, dims, dims};
    profiles.push_back(std::move(profile));
  }
  options.build.profiles = std::move(profiles);
}

}  // namespace hone
