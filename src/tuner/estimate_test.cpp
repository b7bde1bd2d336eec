// SPDX-License-Identifier: Apache-2.0
#include "tuner/estimate.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

constexpr NominalRates kRates{.f32_flops = 1e9, .memory_bytes = 1e6, .cache_bytes = 4e6, .launch_ms = 0.5};

TEST(Estimate, IsTheSlowerOfArithmeticAndTraffic) {
  EXPECT_DOUBLE_EQ(estimate_ms({.flops = 1e9, .operands = 1, .weights = 1}, {}, kRates), 1000.5);
  EXPECT_DOUBLE_EQ(estimate_ms({.flops = 1, .operands = 4e6, .weights = 1e6}, {}, kRates), 2000.5);
}

TEST(Estimate, TakesEachPartAsOftenAsTheTacticDoes) {
  const Work work{.flops = 1e9, .operands = 4e6, .weights = 2e6};
  EXPECT_DOUBLE_EQ(estimate_ms(work, {.arithmetic = 4}, kRates), 4000.5);
  EXPECT_DOUBLE_EQ(estimate_ms(work, {.operands = 3}, kRates), 5000.5);
  EXPECT_DOUBLE_EQ(estimate_ms(work, {.weights = 0.5}, kRates), 2000.5);
}

TEST(Estimate, IsALaunchWhereThereIsNothingToDo) { EXPECT_DOUBLE_EQ(estimate_ms({}, {}, kRates), 0.5); }

}  // namespace
}  // namespace hone
