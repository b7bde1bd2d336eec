// SPDX-License-Identifier: Apache-2.0
#include "quantize/clipping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "base/error.h"

namespace hone {
namespace {

using testing::HasSubstr;

std::vector<float> normal(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> draw;
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return draw(engine); });
  return values;
}

Histogram of(const std::vector<float>& values) {
  Histogram histogram;
  histogram.add(values);
  return histogram;
}

TEST(Histogram, TheOrderOfBatchesDoesNotMatter) {
  const std::vector<float> small{0.5F, -1}, middle{2, -2, 0}, large{3};
  Histogram rising, falling;
  for (const auto* batch : {&small, &middle, &large}) rising.add(*batch);
  for (const auto* batch : {&large, &middle, &small}) falling.add(*batch);
  EXPECT_EQ(rising.magnitude(), 3);
  EXPECT_EQ(falling.magnitude(), 3);
  EXPECT_EQ(rising.min(), -2);
  EXPECT_EQ(rising.count(), 6u);
  EXPECT_EQ(clip_magnitude(rising, {ClippingMethod::minmax}), 3);
  EXPECT_EQ(clip_magnitude(falling, {ClippingMethod::minmax}), 3);
}

TEST(Histogram, EveryValueIsCountedWhateverCameBefore) {
  Histogram histogram;
  for (const float scale : {1e-30F, 1.0F, 1e20F, 1e-3F}) histogram.add(std::vector<float>{scale, -scale, 0});
  uint64_t counted = 0;
  for (const uint64_t count : histogram.bins()) counted += count;
  EXPECT_EQ(counted, histogram.count());
  EXPECT_EQ(histogram.magnitude(), 1e20F);
}

TEST(Histogram, ZerosAloneHaveNoWidth) {
  const Histogram histogram = of({0, 0, -0.0F});
  EXPECT_EQ(histogram.width(), 0);
  EXPECT_EQ(histogram.bins()[0], 3u);
  for (const auto method :
       {ClippingMethod::minmax, ClippingMethod::entropy, ClippingMethod::percentile, ClippingMethod::mse})
    EXPECT_EQ(clip_magnitude(histogram, {method}), 0);
}

TEST(Histogram, WhatIsNotFiniteIsRefused) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Histogram histogram;
    EXPECT_THROW(histogram.add(std::vector<float>{1, value, 2}), Error);
    EXPECT_THROW(histogram.add(std::vector<float>{value}), Error);
  }
}

TEST(Clipping, AnOutlierIsClippedAndTheOthersAreNot) {
  std::vector<float> values = normal(4096, 3);
  values[17] = 40;
  const Histogram histogram = of(values);
  EXPECT_EQ(clip_magnitude(histogram, {ClippingMethod::minmax}), 40);
  for (const Clipping& clipping : {Clipping{ClippingMethod::entropy}, Clipping{ClippingMethod::percentile, 99.9}}) {
    const float magnitude = clip_magnitude(histogram, clipping);
    EXPECT_LT(magnitude, 10) << text_of(clipping);
    EXPECT_GT(magnitude, 2) << text_of(clipping);
  }
}

TEST(Clipping, ValuesThatAreEvenlySpreadAreNotClipped) {
  std::vector<float> values;
  for (int i = -5000; i <= 5000; ++i) values.push_back(static_cast<float>(i) / 5000);
  const Histogram histogram = of(values);
  EXPECT_GT(clip_magnitude(histogram, {ClippingMethod::entropy}), 0.95F);
  EXPECT_GT(clip_magnitude(histogram, {ClippingMethod::mse}), 0.95F);
}

TEST(Clipping, ThePercentileIsTheShareThatStays) {
  std::vector<float> values;
  for (int i = 1; i <= 10000; ++i) values.push_back(static_cast<float>(i));
  const Histogram histogram = of(values);
  const float whole = clip_magnitude(histogram, {ClippingMethod::percentile, 100}),
              most = clip_magnitude(histogram, {ClippingMethod::percentile, 99});
  EXPECT_EQ(whole, 10000);
  EXPECT_NEAR(most, 9900, 2 * histogram.width());
  EXPECT_NEAR(share_beyond(histogram, most), 0.01, 1e-3);
  EXPECT_EQ(share_beyond(histogram, whole), 0);
}

TEST(Clipping, TheLeastErrorIsNoLargerThanThatOfOtherCuts) {
  const std::vector<float> values = normal(20000, 11);
  const Histogram histogram = of(values);
  const auto error = [&](float magnitude) {
    const float step = magnitude / 127;
    double sum = 0;
    for (const float value : values) {
      const double back = step * std::clamp(std::nearbyint(value / step), -127.0F, 127.0F);
      sum += (value - back) * (value - back);
    }
    return sum;
  };
  const double best = error(clip_magnitude(histogram, {ClippingMethod::mse}));
  for (float cut = 1; cut < histogram.magnitude(); cut += 0.25F) EXPECT_LE(best, 1.02 * error(cut)) << cut;
}

TEST(Clipping, ReadsItsNames) {
  for (const std::string_view name : {"entropy", "minmax", "mse", "percentile=99.9"}) {
    const auto clipping = parse_clipping(name);
    ASSERT_TRUE(clipping) << name;
    EXPECT_EQ(text_of(*clipping), name);
  }
  EXPECT_EQ(parse_clipping("percentile")->percentile, 99.99);
  for (const std::string_view name : {"", "kl", "percentile=", "percentile=0", "percentile=101", "percentile=nan"})
    EXPECT_FALSE(parse_clipping(name)) << name;
}

}  // namespace
}  // namespace hone
