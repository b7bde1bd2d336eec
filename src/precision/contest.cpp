// SPDX-License-Identifier: Apache-2.0
#include "precision/contest.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "builder/session.h"

namespace hone {
namespace {

constexpr int kRounds = 7;
constexpr double kClearly = 1.02;  // how much faster fewer bits have to be

/// Two engines in turns: the time of the second one, and the median over the rounds of how many times as fast it is.
struct Duel {
  double second_ms, ratio;
};

Duel duel(Contender& first, Contender& second) {
  std::vector<double> a, b, ratios;
  for (int round = 0; round < kRounds; ++round) {
    const bool first_begins = round % 2 == 0;
    if (first_begins) a.push_back(first.burst());
    b.push_back(second.burst());
    if (!first_begins) a.push_back(first.burst());
    ratios.push_back(a.back() / b.back());
  }
  return {median(b), median(ratios)};
}

class Contest {
 public:
  Contest(const BuildOptions& options, const Enter& enter, const Listeners& listeners)
      : options_(options), enter_(enter), listeners_(listeners) {}

  std::unique_ptr<Contender> run(std::span<const Variant> variants) {
    begin(variants.front());
    for (const Variant& variant : variants.subspan(1))
      if (!must_stop(options_, start_ms_)) challenge(variant);
    if (const std::optional<Variant> mix = mixed(); mix && !must_stop(options_, start_ms_)) challenge(*mix);
    listeners_.tell(&BuildListener::precision_chosen, base_.name);
    return std::move(champion_);
  }

 private:
  void begin(const Variant& variant) {
    listeners_.tell(&BuildListener::precision_begun, variant.name);
    champion_ = enter_(variant);
    base_ = variant;
    times_.push_back({variant.type, champion_->layer_times()});
    listeners_.tell(&BuildListener::precision_timed, variant.name, champion_->burst(), 0.0);
  }

  /// A type that this network cannot be computed in is no reason to fail.
  void challenge(const Variant& variant) {
    listeners_.tell(&BuildListener::precision_begun, variant.name);
    std::unique_ptr<Contender> challenger;
    try {
      challenger = enter_(variant);
    } catch (const Error& error) {
      return listeners_.tell(&BuildListener::precision_refused, variant.name, error.message());
    }
    times_.push_back({variant.type, challenger->layer_times()});
    const Duel times = duel(*champion_, *challenger);
    listeners_.tell(&BuildListener::precision_timed, variant.name, times.second_ms, challenger->error());
    if (!is_near(challenger->error()))
      return listeners_.tell(&BuildListener::precision_refused, variant.name,
                             std::string_view("its results are further from those in FP32 than they may be"));
    if (times.ratio < kClearly) return;
    champion_ = std::move(challenger);
    base_ = variant;
    champion_at_ = times_.size() - 1;
  }
  bool is_near(double error) const {
    return !std::isnan(error) && (options_.accuracy_budget < 0 || error <= options_.accuracy_budget);
  }

  /// The champion with its slow parts in other types; what the user asked of single layers stays.
  std::optional<Variant> mixed() const {
    std::vector<std::pair<std::string, std::string>> types = mixed_types(times_, champion_at_);
    std::erase_if(types, [&](const auto& type) {
      return std::ranges::any_of(options_.layer_types, [&](const auto& asked) { return asked.first == type.first; });
    });
    if (types.empty()) return std::nullopt;
    const auto uses = [&](std::string_view name) {
      return std::ranges::any_of(types, [&](const auto& type) { return type.second == name; });
    };
    Variant mix{"mixed", base_.type, base_.options};
    const bool half = uses("fp16") || uses("bf16");
    mix.options.fp16 |= half && options_.fp16;
    mix.options.bf16 |= half && options_.bf16;
    mix.options.int8 |= uses("int8");
    mix.options.layer_types = std::move(types);
    mix.options.layer_types.insert(mix.options.layer_types.end(), options_.layer_types.begin(),
                                   options_.layer_types.end());
    return mix;
  }

  const BuildOptions& options_;
  const Enter& enter_;
  const Listeners& listeners_;
  const double start_ms_ = now_ms();
  std::unique_ptr<Contender> champion_;
  Variant base_;  // the champion's
  std::vector<EngineTimes> times_;
  size_t champion_at_ = 0;  // among the times
};

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::unique_ptr<Contender> contest(std::span<const Variant> variants, const BuildOptions& options, const Enter& enter,
                                   const Listeners& listeners) {
  return Contest(options, enter, listeners).run(variants);
}

}  // namespace hone
