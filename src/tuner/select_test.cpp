// SPDX-License-Identifier: Apache-2.0
#include "tuner/select.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <random>

#include "base/error.h"
#include "tuner/timing_cache.h"

namespace hone {
namespace {

constexpr Layout kL = Layout::linear, kC = Layout::channels_last;

SelectProblem chain(double reformat) {
  SelectProblem problem;
  problem.given[0] = kL;
  problem.wanted[3] = kL;
  for (int r = 0; r < 3; ++r) problem.regions.push_back({{r}, {r + 1}, {{{kL}, {kL}, 2.0, 0}, {{kC}, {kC}, 1.0, 1}}});
  for (int v = 0; v < 4; ++v) {
    problem.reformat_ms[{v, kL, kC}] = reformat;
    problem.reformat_ms[{v, kC, kL}] = reformat;
  }
  return problem;
}

TEST(Select, TakesTheFasterLayoutWhenReformatsPay) {
  const Selected cheap = select(chain(0.5));
  EXPECT_EQ(cheap.option, (std::vector<int>{1, 1, 1}));
  EXPECT_DOUBLE_EQ(cheap.ms, 4.0);
  const Selected dear = select(chain(2.0));
  EXPECT_EQ(dear.option, (std::vector<int>{0, 0, 0}));
  EXPECT_DOUBLE_EQ(dear.ms, 6.0);
}

TEST(Select, SharesOneReformatAmongConsumers) {
  SelectProblem problem;
  problem.given[0] = kL;
  for (int r = 0; r < 3; ++r) problem.regions.push_back({{0}, {r + 1}, {{{kC}, {kC}, 1.0, 0}}});
  problem.reformat_ms[{0, kL, kC}] = 0.25;
  EXPECT_DOUBLE_EQ(select(problem).ms, 3.25);
}

TEST(Select, TiesGoToTheEarlierOption) {
  SelectProblem problem;
  problem.given[0] = kL;
  problem.regions.push_back({{0}, {1}, {{{kL}, {kL}, 1.0, 0}, {{kL}, {kL}, 0.99, 1}, {{kL}, {kL}, 0.9, 2}}});
  EXPECT_EQ(select(problem).option[0], 2);
  problem.regions[0].options.pop_back();
  EXPECT_EQ(select(problem).option[0], 0);
}

/// A chain with skips of up to three regions, each in three layouts and one that turns one layout into another.
SelectProblem random_problem(std::mt19937& random, int regions) {
  constexpr Layout kAll[] = {Layout::linear, Layout::channels_last, Layout::blocked8};
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  SelectProblem problem;
  problem.given[0] = kL;
  problem.wanted[regions] = kL;
  for (int r = 0; r < regions; ++r) {
    SelectRegion region{{r}, {r + 1}, {}};
    if (r > 1 && random() % 2 == 0) region.inputs.push_back(r - static_cast<int>(random() % std::min(r, 3)) - 1);
    for (int option = 0; option < 4; ++option) {
      const Layout in = kAll[option % 3], out = option < 3 ? in : kAll[random() % 3];
      region.options.push_back({std::vector<Layout>(region.inputs.size(), in), {out}, uniform(0.5, 2), option});
    }
    problem.regions.push_back(std::move(region));
  }
  for (int value = 0; value <= regions; ++value)
    for (const Layout from : kAll)
      for (const Layout to : kAll)
        if (from != to) problem.reformat_ms[{value, from, to}] = uniform(0.05, 0.8);
  return problem;
}

/// The least time of all choices, each priced by select() with nothing left to choose.
double least(SelectProblem problem) {
  const std::vector<SelectRegion> all = problem.regions;
  size_t count = 1;
  for (const SelectRegion& region : all) count *= region.options.size();
  double best = std::numeric_limits<double>::infinity();
  for (size_t number = 0; number < count; ++number) {
    size_t rest = number;
    for (size_t r = 0; r < all.size(); ++r) {
      problem.regions[r].options = {all[r].options[rest % all[r].options.size()]};
      rest /= all[r].options.size();
    }
    best = std::min(best, select(problem).ms);
  }
  return best;
}

TEST(Select, DescentComesCloseToTheLeastOfAllChoices) {
  constexpr int kProblems = 12, kRegions = 5;
  std::mt19937 random(7);
  int least_found = 0;
  double sum = 0, worst = 1;
  for (int i = 0; i < kProblems; ++i) {
    const SelectProblem problem = random_problem(random, kRegions);
    const double ratio = select(problem).ms / least(problem);
    EXPECT_GE(ratio, 1 - 1e-9);
    least_found += ratio < 1 + 1e-9;
    sum += ratio, worst = std::max(worst, ratio);
  }
  std::printf("seed 7: the least of all choices in %d of %d, mean %.4f of it, at worst %.3f\n", least_found, kProblems,
              sum / kProblems, worst);
  EXPECT_LE(sum / kProblems, 1.01);
  EXPECT_LE(worst, 1.1);
}

TEST(TimingCache, ParseIsTheInverseOfText) {
  TimingCache cache;
  cache.put("a \"quoted\" key", {0.5, 0.01, 8, ""});
  cache.put("b", {-1, 0, 0, "differs from the reference"});
  const TimingCache copy = TimingCache::parse(cache.text());
  EXPECT_EQ(copy.text(), cache.text());
  EXPECT_EQ(copy.find("b")->note, "differs from the reference");
  EXPECT_EQ(copy.hits(), 1u);
}

TEST(TimingCache, NeverReplacesAMeasurement) {
  TimingCache cache, other;
  cache.put("a", {1, 0, 1, ""});
  other.put("a", {2, 0, 1, ""});
  other.put("b", {3, 0, 1, ""});
  cache.merge(other);
  EXPECT_EQ(cache.find("a")->ms, 1);
  EXPECT_EQ(cache.find("b")->ms, 3);
}

TEST(TimingCache, SkipsDamagedLines) {
  TimingCache cache;
  cache.put("a", {1, 0, 1, ""});
  cache.put("b", {2, 0, 1, ""});
  const std::string text = cache.text();
  for (size_t cut = 0; cut < text.size(); ++cut) {
    size_t skipped = 0;
    EXPECT_LE(TimingCache::parse(text.substr(0, cut), &skipped).entries(), 2u);
  }
  size_t skipped = 0;
  EXPECT_EQ(TimingCache::parse("\x01\x02 not a cache\n", &skipped).entries(), 0u);
  EXPECT_EQ(skipped, 1u);
}

}  // namespace
}  // namespace hone
