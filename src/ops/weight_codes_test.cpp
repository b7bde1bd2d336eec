// SPDX-License-Identifier: Apache-2.0
#include "ops/weight_codes.h"

#include <gtest/gtest.h>

#include <random>

#include "ops/support.h"

namespace hone {
namespace {

constexpr int64_t kChannels = 5, kDepth = 33;
constexpr unsigned kSeed = 2611;

/// [depth, channels] or [channels, depth] of steps whose scale differs from channel to channel.
std::vector<float> steps(size_t channel_axis, int most, std::vector<int>& codes) {
  std::mt19937 random(kSeed);
  std::uniform_int_distribution<int> code(-most, most);
  std::vector<float> values;
  for (int64_t i = 0; i < kChannels * kDepth; ++i) {
    const int64_t channel = channel_axis == 0 ? i / kDepth : i % kChannels,
                  place = channel_axis == 0 ? i % kDepth : i / kChannels;
    codes.push_back(place == 0 ? most : place == 1 ? 1 : code(random));
    values.push_back(static_cast<float>(codes.back()) * (0.00123F * static_cast<float>(channel + 1)));
  }
  return values;
}

TEST(WeightCodes, FindsTheStepsOfEachChannel) {
  for (const DType dtype : {DType::f32, DType::f16})
    for (const size_t axis : {0, 1})
      for (const int most : {7, 113, 127}) {
        std::vector<int> codes;
        const std::vector<float> values = steps(axis, most, codes);
        const Dims dims = axis == 0 ? Dims{kChannels, kDepth} : Dims{kDepth, kChannels};
        const std::shared_ptr<const WeightCodes> found =
            weight_codes(write_floats(dtype, dims, values), axis, DType::i8);
        ASSERT_TRUE(found) << name_of(dtype) << " " << axis << " " << most;
        EXPECT_TRUE(std::ranges::equal(found->codes, codes));
        for (size_t c = 0; c < found->scales.size(); ++c)
          EXPECT_NEAR(found->scales[c] / (0.00123F * static_cast<float>(c + 1)), 1, dtype == DType::f32 ? 1e-6 : 5e-4);
      }
}

TEST(WeightCodes, TakesTheWholeRangeOfAByte) {
  const std::vector<float> values{-128, 127, 1, -3};
  const std::shared_ptr<const WeightCodes> found = weight_codes(write_floats(DType::f32, {1, 4}, values), 0, DType::i8);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->codes, (std::vector<int8_t>{-128, 127, 1, -3}));
  EXPECT_FALSE(weight_codes(write_floats(DType::f32, {1, 4}, std::vector<float>{-127, 128, 1, -3}), 0, DType::i8));
}

TEST(WeightCodes, AChannelOfZerosHasCodesOfZero) {
  const std::shared_ptr<const WeightCodes> found =
      weight_codes(write_floats(DType::f16, {2, 2}, std::vector<float>{0, 0, 3, 1}), 0, DType::i8);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->codes, (std::vector<int8_t>{0, 0, 3, 1}));
}

TEST(WeightCodes, AreFoundOnceWhileTheyAreKept) {
  const Tensor weights = write_floats(DType::f32, {1, 3}, std::vector<float>{-2, 1, 127});
  EXPECT_NE(weight_codes(weights, 0, DType::i8), weight_codes(weights, 0, DType::i8)) << "nobody keeps them";
  const KeptWeightCodes kept;
  const std::shared_ptr<const WeightCodes> found = weight_codes(weights, 0, DType::i8);
  ASSERT_TRUE(found);
  EXPECT_EQ(weight_codes(weights, 0, DType::i8), found);
  EXPECT_EQ(weight_codes(Tensor(weights), 0, DType::i8), found) << "a copy shares the bytes";
  EXPECT_NE(weight_codes(weights.reshaped({3, 1}), 0, DType::i8), found);
  EXPECT_NE(weight_codes(weights, 0, DType::f8e4m3fn), found);
}

TEST(WeightCodes, NothingForWeightsThatWereNotQuantised) {
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  for (const int64_t depth : {16, 64, 576}) {
    std::vector<float> values(static_cast<size_t>(2 * depth));
    for (float& value : values) value = normal(random);
    for (const DType dtype : {DType::f32, DType::f16})
      EXPECT_FALSE(weight_codes(write_floats(dtype, {2, depth}, values), 0, DType::i8))
          << depth << " in " << name_of(dtype);
  }
  EXPECT_FALSE(weight_codes(write_floats(DType::f32, {1, 2}, std::vector<float>{INFINITY, 1}), 0, DType::i8));
  EXPECT_FALSE(weight_codes(write_floats(DType::bf16, {1, 2}, std::vector<float>{1, 2}), 0, DType::i8));
}

TEST(WeightCodes, FindsTheNumbersOfE4m3) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const size_t axis : {0, 1})
      for (const uint8_t most : {0x7e, 0x77, 0x61}) {  // 448, 240 (the only one with all bits), 36
        std::mt19937 random(kSeed);
        std::uniform_int_distribution<int> code(0, most);
        const Dims dims = axis == 0 ? Dims{kChannels, kDepth} : Dims{kDepth, kChannels};
        std::vector<float> values, numbers;
        for (int64_t i = 0; i < kChannels * kDepth; ++i) {
          const int64_t channel = axis == 0 ? i / kDepth : i % kChannels,
                        place = axis == 0 ? i % kDepth : i / kChannels;
          const float number = small_to_float(DType::f8e4m3fn, place == 0 ? most : static_cast<uint8_t>(code(random)));
          numbers.push_back(place % 2 == 0 ? number : -number);
          values.push_back(numbers.back() * (0.00123F * static_cast<float>(channel + 1)));
        }
        const std::shared_ptr<const WeightCodes> found =
            weight_codes(write_floats(dtype, dims, values), axis, DType::f8e4m3fn);
        ASSERT_TRUE(found) << name_of(dtype) << " " << axis << " " << int{most};
        for (size_t i = 0; i < values.size(); ++i) {
          const size_t channel = axis == 0 ? i / kDepth : i % kChannels;
          const float told =
              found->scales[channel] * small_to_float(DType::f8e4m3fn, static_cast<uint8_t>(found->codes[i]));
          EXPECT_NEAR(told, values[i], std::abs(values[i]) * (dtype == DType::bf16 ? 8e-3 : 1e-3) + 2e-8) << i;
        }
      }
}

TEST(WeightCodes, NothingOfE4m3ForOtherWeights) {
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  std::vector<float> values(64), steps(64);
  for (float& value : values) value = normal(random);
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<float>(i + 64);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const std::vector<float>& given : {values, steps})
      EXPECT_FALSE(weight_codes(write_floats(dtype, {1, 64}, given), 0, DType::f8e4m3fn)) << name_of(dtype);
}

}  // namespace
}  // namespace hone
