// SPDX-License-Identifier: Apache-2.0
#include "precision/choose.h"

#include <algorithm>

#include "base/clock.h"
#include "ir/custom.h"

namespace hone {
namespace {

void say(const std::vector<Variant>& variants, const std::vector<std::string>& left_out, const Listeners& listeners) {
  std::string names;
  for (const Variant& variant : variants) names += (names.empty() ? "" : ", ") + variant.name;
  listeners.tell(&BuildListener::pass_said, Severity::info, fmt::format("Best: allowed are {}.", names));
  for (const std::string& reason : left_out)
    listeners.tell(&BuildListener::pass_said, Severity::info, fmt::format("Best: without {}.", reason));
}

}  // namespace

Plan choose_precision(const Graph& given, const BuildOptions& options, const Backend& backend,
                      const std::shared_ptr<Device>& device, TimingCache& cache, const Listeners& listeners,
                      const Sample& sample) {
  const double start = now_ms();
  const auto plan_of = [&](BuildOptions allowed) {
    allowed.best = false;
    if (allowed.budget_seconds >= 0)
      allowed.budget_seconds = std::max(0.0, allowed.budget_seconds - seconds_since(start));
    return build(given.clone(), allowed, backend, *device, cache, listeners);
  };
  const std::vector<Variant> variants = variants_of(given, options, device->info());
  say(variants, left_out(given, options, device->info()), listeners);
  if (variants.size() == 1 || options.optimization_level == 0) return plan_of(options);

  NamedTensors expected;
  const Enter enter = [&](const Variant& variant) {
    auto entered = std::make_unique<RunningPlan>(plan_of(variant.options), backend, device, sample,
                                                 expected.empty() ? nullptr : &expected, custom_operators(given));
    if (expected.empty()) expected = entered->outputs();
    return entered;
  };
  try {
    const std::unique_ptr<Contender> winner = contest(variants, options, enter, listeners);
    return static_cast<const RunningPlan&>(*winner).plan();  // enter() makes no others
  } catch (const Error& error) {
    listeners.tell(&BuildListener::precision_refused, std::string_view("a choice by time"), error.message());
    return plan_of(options);
  }
}

}  // namespace hone
