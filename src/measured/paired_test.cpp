// SPDX-License-Identifier: Apache-2.0
#include "measured/paired.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hone {
namespace {

constexpr size_t kRounds = 21;

/// Two engines on a machine that drifts by a third in the course, each with noise of its own; the second takes `ratio` times as long.
PairedRatio drifting(uint64_t seed, double ratio, double noise) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, noise);
  std::vector<double> first, second;
  for (size_t i = 0; i < kRounds; ++i) {
    const double drift = 1 + static_cast<double>(i) / (3 * kRounds);
    first.push_back(drift * std::exp(normal(random)));
    second.push_back(drift * ratio * std::exp(normal(random)));
  }
  return paired_ratio(second, first, seed);
}

TEST(PairedRatio, TellsTwoPercentInOnePercentOfNoiseHoweverTheMachineDrifts) {
  int told = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const PairedRatio slower = drifting(seed, 1.02, 0.01);
    EXPECT_NEAR(slower.ratio, 1.02, 0.015) << seed;
    EXPECT_LT(slower.low, slower.ratio);
    EXPECT_LT(slower.ratio, slower.high);
    told +=
        slower.verdict() == PairedVerdict::slower && drifting(seed, 1 / 1.02, 0.01).verdict() == PairedVerdict::faster
            ? 1
            : 0;
  }
  EXPECT_GE(told, 95);
}

TEST(PairedRatio, CallsEqualOnesDifferentInNoMoreThanItsShareOfCases) {
  constexpr int kCases = 400;
  int wrong = 0;
  for (uint64_t seed = 0; seed < kCases; ++seed)
    wrong += drifting(1000 + seed, 1, 0.02).verdict() == PairedVerdict::undecided ? 0 : 1;
  EXPECT_LE(wrong, kCases * 8 / 100);  // 5 % are due; three deviations of that are 3.3
  EXPECT_GE(wrong, kCases * 1 / 100);  // bounds are not wide for nothing
}

TEST(PairedRatio, SaysNothingAboutASingleRound) {
  const double one[] = {1.0}, two[] = {2.0};
  EXPECT_EQ(paired_ratio(two, one).ratio, 2);
  EXPECT_EQ(paired_ratio(two, one).verdict(), PairedVerdict::undecided);
  EXPECT_EQ(verdict_text(PairedVerdict::undecided), "cannot be told apart");
}

}  // namespace
}  // namespace hone
