// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "measured/times.h"

namespace hone {
namespace {

std::vector<float> one_to(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST(Statistics, PercentilesTakeTheSamplesOfTheOriginal) {
  constexpr float kPercents[] = {0, 50, 90, 95, 99, 100};
  struct Row {
    size_t count;
    float indices[6];
  };
  constexpr Row kRows[] = {
      {10, {0, 4, 8, 9, 9, 9}},       {20, {0, 9, 17, 18, 19, 19}},         {50, {0, 24, 44, 47, 49, 49}},
      {100, {0, 49, 89, 94, 99, 99}}, {1000, {0, 499, 899, 949, 990, 999}}, {2523, {0, 1261, 2270, 2396, 2497, 2522}}};
  for (const Row& row : kRows)
    for (size_t i = 0; i < std::size(kPercents); ++i)
      EXPECT_EQ(percentile(kPercents[i], one_to(row.count)), row.indices[i])
          << row.count << " samples, percentile " << kPercents[i];
}

TEST(Statistics, MedianOfAnEvenCountIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(summarize({4, 1, 3, 2}, {}).median, 2.5f);
  EXPECT_EQ(summarize({5, 1, 3}, {}).median, 3);
}

TEST(Statistics, SummaryDoesNotDependOnTheOrderOfSamples) {
  const std::vector<float> percents{90};
  const Summary summary = summarize({3, 1, 2, 4}, percents);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 4);
  EXPECT_EQ(summary.mean, 2.5f);
  EXPECT_EQ(summary.percentiles[0], 4);
}

TEST(Statistics, VarianceIsThatOfThePopulation) {
  EXPECT_NEAR(summarize({1, 3}, {}).coefficient_of_variance, 50, 1e-4);
  EXPECT_EQ(summarize({7, 7, 7}, {}).coefficient_of_variance, 0);
}

TEST(Statistics, WarmUpEndsWithTheFirstQueryThatStartsAfterIt) {
  std::vector<Trace> traces(4);
  for (size_t i = 0; i < 4; ++i) traces[i].compute_start = 100.0f * static_cast<float>(i);
  EXPECT_EQ(warm_up_queries(traces, 0), 0u);
  EXPECT_EQ(warm_up_queries(traces, 150), 2u);
  EXPECT_EQ(warm_up_queries(traces, 200), 2u);
  EXPECT_EQ(warm_up_queries(traces, 1000), 4u);
}

}  // namespace
}  // namespace hone
