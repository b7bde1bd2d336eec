// SPDX-License-Identifier: Apache-2.0
#include "measured/paired.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "base/error.h"

namespace hone {
namespace {

constexpr size_t kDraws = 10'000;
constexpr double kOutside = 0.025;  // at either end

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Means of few values scatter by less than those of what they were drawn from: their deviations are stretched by as much.
double stretch(size_t rounds) { return std::sqrt(static_cast<double>(rounds) / static_cast<double>(rounds - 1)); }

}  // namespace

std::string_view verdict_text(PairedVerdict verdict) {
  constexpr std::string_view kTexts[] = {"faster", "slower", "cannot be told apart"};
  return kTexts[static_cast<size_t>(verdict)];
}

PairedRatio paired_ratio(std::span<const double> times, std::span<const double> reference, uint64_t seed) {
  const size_t rounds = times.size();
  HONE_ASSERT(rounds == reference.size() && rounds > 0, "{} rounds beside {}", rounds, reference.size());
  std::vector<double> logarithms(rounds);
  for (size_t i = 0; i < rounds; ++i) {
    HONE_ASSERT(times[i] > 0 && reference[i] > 0, "round {} took no time", i);
    logarithms[i] = std::log(times[i] / reference[i]);
  }
  const double mean = mean_of(logarithms);
  if (rounds == 1) return {std::exp(mean), 0, std::numeric_limits<double>::infinity()};
  std::mt19937_64 random(seed);
  std::vector<double> means(kDraws);
  for (double& each : means) {
    double sum = 0;
    for (size_t i = 0; i < rounds; ++i) sum += logarithms[random() % rounds];
    each = mean + (sum / static_cast<double>(rounds) - mean) * stretch(rounds);
  }
  std::ranges::sort(means);
  const auto at = [&](double share) { return means[static_cast<size_t>(share * static_cast<double>(kDraws - 1))]; };
  return {std::exp(mean), std::exp(at(kOutside)), std::exp(at(1 - kOutside))};
}

}  // namespace hone
