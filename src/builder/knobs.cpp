// SPDX-License-Identifier: Apache-2.0
#include "builder/knobs.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "passes/pipeline.h"

namespace hone {
namespace {

constexpr std::string_view kLevel = "opt_level", kTactics = "max_tactics";

/// Libraries of kernels by the names of their sources.
struct SourceKnob {
  std::string_view name, sources, help;
};
constexpr SourceKnob kSources[] = {{"onednn", "onednn", "kernels of oneDNN"},
                                   {"own_kernels", "cpu,cuda", "kernels that Hone makes itself"},
                                   {"cudnn", "cudnn", "kernels of cuDNN, on GPUs"},
                                   {"cublaslt", "cublaslt", "kernels of cuBLASLt, on GPUs"}};

/// Passes that make a graph faster, not possible: those that a build can do without.
constexpr std::string_view kOptional[] = {"fuse_",        "merge_convs", "move_",   "absorb_",
                                          "split_linear", "fold_scale",  "fold_pad"};

void collect_passes(std::span<const Pass> passes, std::set<std::string_view>& seen, std::vector<Knob>& knobs) {
  for (const Pass& pass : passes) {
    collect_passes(pass.group, seen, knobs);
    const bool optional = std::ranges::any_of(kOptional, [&](auto prefix) { return pass.name.starts_with(prefix); });
    if (pass.group.empty() && optional && seen.insert(pass.name).second)
      knobs.push_back({std::string(pass.name), {"on", "off"}, "on", fmt::format("the pass {}", pass.name)});
  }
}

std::vector<Knob> collect_knobs() {
  std::vector<Knob> knobs{
      {std::string(kLevel), {"0", "1", "2", "3", "4", "5"}, "3", "effort, as --builderOptimizationLevel"},
      {std::string(kTactics), {"-1", "4", "8", "16", "32", "64"}, "-1", "tactics timed per layer, as --maxTactics"}};
  for (const SourceKnob& source : kSources)
    knobs.push_back({std::string(source.name), {"on", "off"}, "on", std::string(source.help)});
  std::set<std::string_view> seen;
  collect_passes(pipeline(), seen, knobs);
  return knobs;
}

const Knob& knob_called(std::string_view name) {
  const auto found = std::ranges::find(build_knobs(), name, &Knob::name);
  if (found != build_knobs().end()) return *found;
  std::vector<std::string_view> names;
  for (const Knob& knob : build_knobs()) names.push_back(knob.name);
  throw Error(fmt::format("there is no knob {}", name), fmt::format("did you mean {}?", nearest(name, names)));
}

}  // namespace

const std::vector<Knob>& build_knobs() {
  static const std::vector<Knob> kKnobs = collect_knobs();
  return kKnobs;
}

void turn_knob(BuildOptions& options, std::string_view knob, std::string_view value) {
  const std::vector<std::string>& values = knob_called(knob).values;
  if (std::ranges::find(values, value) == values.end())
    throw Error(fmt::format("{} is no value of {}", value, knob), fmt::format("its values are {}", join(values, ", ")));
  const auto source = std::ranges::find(kSources, knob, &SourceKnob::name);
  if (knob == kLevel) options.optimization_level = static_cast<int>(*parse_integer(value));
  else if (knob == kTactics) options.max_tactics = static_cast<int>(*parse_integer(value));
  else if (value == "on") return;
  else if (source == std::end(kSources)) options.disabled_passes.emplace_back(knob);
  else
    for (const std::string_view name : split(source->sources, ',')) options.disabled_sources.emplace_back(name);
}

}  // namespace hone
