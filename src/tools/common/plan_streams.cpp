// SPDX-License-Identifier: Apache-2.0
#include "tools/common/plan_streams.h"

#include <algorithm>

#include "tools/files/rank_files.h"

namespace hone {
namespace {

bool says_streams(const Options& options) {
  return std::ranges::any_of(options.arguments, [](const std::string& argument) {
    const std::string flag = argument.substr(0, argument.find('='));
    return flag == "--infStreams" || flag == "--streams";
  });
}

/// The first of "n,3,8,8".
std::string first_size(const NetworkTensor& tensor) { return tensor.sizes.substr(0, tensor.sizes.find(',')); }

void set_rows(const hone_plan* plan, int64_t rows, Options& options) {
  const std::vector<PlanProfile> profiles = profiles_of(plan);
  const auto number = static_cast<size_t>(options.tool.use_profile);
  if (number >= profiles.size()) return;
  for (const std::string& input : inputs_with_rows(tensors_of(plan))) {
    const auto range = std::ranges::find(profiles[number].ranges, input, &InputRange::input);
    if (range == profiles[number].ranges.end()) continue;
    Dims& dims = options.tool.shapes.emplace(input, range->opt).first->second;
    dims[0] = std::clamp(rows, range->min[0], range->max[0]);
  }
}

}  // namespace

std::vector<std::string> inputs_with_rows(std::span<const NetworkTensor> tensors) {
  std::vector<std::string> names;
  std::string rows;
  for (const NetworkTensor& tensor : tensors) {
    if (!tensor.is_input) continue;
    if (!tensor.ranked || tensor.dims.empty() || tensor.dims[0] != -1) return {};
    if (rows.empty()) rows = first_size(tensor);
    if (first_size(tensor) != rows) return {};
    names.push_back(tensor.name);
  }
  return names;
}

FollowedPlan follow_plan(Options& options) {
  if (options.tool.load_engine.empty() || says_streams(options)) return {};
  try {
    FollowedPlan followed{.taken = {}, .file = read_plan_file(of_rank(options.tool.load_engine))};
    const hone_plan* plan = followed.file.plan.get();
    const auto found = ask<hone_throughput>(hone_plan_throughput, plan);
    if (found.streams == 0) return followed;
    options.perf.streams = found.streams;
    if (options.tool.shapes.empty()) set_rows(plan, found.rows, options);
    followed.taken = found;
    return followed;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace hone
