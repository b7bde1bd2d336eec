// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/reduced_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "builder/build.h"
#include "ir/custom.h"
#include "precision/choose.h"
#include "tools/accuracy/counterparts.h"
#include "tools/common/keep_list.h"
#include "tools/model/tensor_errors.h"

namespace hone {
namespace {

constexpr size_t kBatches = 8;  // that a trial is judged by
constexpr int kBursts = 5;

double median_ms(RunningPlan& plan) {
  std::vector<double> ms;
  for (int i = 0; i < kBursts; ++i) ms.push_back(plan.burst());
  return median(std::move(ms));
}

void add(std::map<std::string, ErrorSums>& sums, const NamedTensors& found, const NamedTensors& expected) {
  for (const auto& [name, tensor] : expected) {
    const auto there = found.find(name);
    const std::optional<std::vector<float>> exact = real_values(tensor, std::nullopt);
    if (!exact || there == found.end()) continue;
    const std::optional<std::vector<float>> values = real_values(there->second, std::nullopt);
    if (values && values->size() == exact->size()) sums[name].add(*values, *exact);
  }
}

double largest(const std::map<std::string, ErrorSums>& sums) {
  double error = 0;
  for (const auto& [name, sum] : sums) {
    const double relative = sum.error(name).relative;
    error = std::max(error, std::isnan(relative) ? std::numeric_limits<double>::infinity() : relative);
  }
  return error;
}

/// The options of the exact network: no types but FP32.
BuildOptions exact_options(const BuildOptions& options) {
  BuildOptions exact{.profiles = options.profiles, .tf32 = false, .optimization_level = 0};
  return exact;
}

}  // namespace

ReducedNetwork::ReducedNetwork(const hone_model& model, const hone_model& exact, const hone_device& device,
                               const BuildOptions& options, const Samples& samples)
    : model_(model), exact_(exact), device_(device), options_(options), samples_(samples) {
  BuildOptions full = exact_options(options);
  full.optimization_level = options.optimization_level;
  const auto plan = running(build(exact_.graph.clone(), full, *device_.backend, *device_.device, cache_));
  exact_ms_ = median_ms(*plan);
  for (size_t batch = 0; batch < std::min(kBatches, samples_.count()); ++batch) {
    if (batch > 0) plan->run(samples_.at(batch));
    expected_.push_back(plan->outputs());
  }
}

Plan ReducedNetwork::plan(const NodeNames& kept) {
  BuildOptions options = options_;
  for (const std::string& node : kept) options.layer_types.emplace_back(node, "fp32");
  if (options.best)
    return choose_precision(model_.graph, options, *device_.backend, device_.device, cache_, {}, samples_.at(0));
  return build(model_.graph.clone(), options, *device_.backend, *device_.device, cache_);
}

/// Nothing reads a debug tensor when the inference has ended, so that its memory need not be its own.
Plan ReducedNetwork::exact_plan(const std::vector<std::string>& tensors) const {
  BuildOptions options = exact_options(options_);
  options.debug_tensors = tensors;
  TimingCache nothing_is_timed;
  Plan plan = build(exact_.graph.clone(), options, *device_.backend, *device_.device, nothing_is_timed);
  for (BufferSlot& slot : plan.profiles[0].buffers) slot.debug = false;
  return plan;
}

std::unique_ptr<RunningPlan> ReducedNetwork::running(Plan plan) const {
  return std::make_unique<RunningPlan>(std::move(plan), *device_.backend, device_.device, samples_.at(0), nullptr,
                                       custom_operators(model_.graph));
}

Trial ReducedNetwork::trial(const NodeNames& kept) {
  const std::unique_ptr<RunningPlan> network = running(plan(kept));
  Trial result{kept, 0, median_ms(*network)};
  std::map<std::string, ErrorSums> sums;
  for (size_t batch = 0; batch < expected_.size(); ++batch) {
    network->run(samples_.at(batch));
    add(sums, network->outputs(), expected_[batch]);
  }
  result.error = largest(sums);
  return result;
}

std::vector<Trial> fewest_kept(ReducedNetwork& network, const std::vector<std::vector<std::string>>& worst_first,
                               double budget, Progress& progress) {
  std::vector<Trial> trials;
  const auto holds = [&](const NodeNames& kept) {
    trials.push_back(network.trial(kept));
    progress.advanced(trials.size(), trials.size() + 1, "engines tried");
    return trials.back().error <= budget;
  };
  const auto worst = [&](size_t count) {
    NodeNames kept;
    for (size_t i = 0; i < count; ++i) kept.insert(worst_first[i].begin(), worst_first[i].end());
    return kept;
  };
  NodeNames kept = worst(least_count(worst_first.size(), [&](size_t count) { return holds(worst(count)); }));
  for (const std::string& node : NodeNames(kept)) {
    NodeNames fewer = kept;
    fewer.erase(node);
    if (holds(fewer)) kept = std::move(fewer);
  }
  const auto last = std::ranges::find(trials, kept, &Trial::kept);
  if (last == trials.end()) trials.push_back(network.trial(kept));
  else std::rotate(last, last + 1, trials.end());
  return trials;
}

}  // namespace hone
