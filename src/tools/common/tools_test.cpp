// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error_testing.h"
#include "base/file.h"
#include "base/folder_testing.h"
#include "measured/random_values.h"
#include "tools/common/input_data.h"
#include "tools/common/model_shapes.h"
#include "tools/common/progress.h"
#include "tools/trtexec/accuracy.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Inputs x: f32[n,3,h,8] and fixed: f32[2,2].
std::vector<NetworkTensor> model() {
  return {{.name = "x", .dims = {-1, 3, -1, 8}, .sizes = "n,3,h,8"}, {.name = "fixed", .dims = {2, 2}, .sizes = "2,2"}};
}

ProfileOptions fixed_at(const std::string& name, const Dims& dims) { return {{name, ShapeRange{dims, dims, dims}}}; }

TEST(ModelProfiles, GiveOneToSizesThatNobodyNamed) {
  std::vector<std::string> lines;
  const Logger log([&](Severity severity, std::string_view text) {
    if (severity == Severity::warning) lines.emplace_back(text);
  });
  const auto profiles = model_profiles(model(), {}, {}, log);
  ASSERT_EQ(profiles.size(), 1u);
  EXPECT_THAT(profiles[0].at("x").opt, ElementsAre(1, 3, 1, 8));
  EXPECT_FALSE(profiles[0].contains("fixed"));
  EXPECT_THAT(lines, ElementsAre("Dynamic dimensions required for input: x, but no shapes were provided. Automatically "
                                 "overriding shape to: 1x3x1x8"));
}

TEST(ModelProfiles, RefuseWhatContradictsTheModel) {
  const auto refuse = [](const ProfileOptions& profile) {
    return error_of([&] { model_profiles(model(), {profile}, {{"--shapes", "nobody:1,x:1x4x8x8"}}, silent_logger()); });
  };
  EXPECT_THAT(refuse(fixed_at("nobody", {1})),
              testing::AllOf(HasSubstr("Invalid tensor names found in --shapes flag."), HasSubstr("nobody"),
                             HasSubstr("\n  --shapes=nobody:1,x:1x4x8x8\n           ^\n"),
                             HasSubstr("hint: did you mean fixed? The inputs are x: ")));
  EXPECT_THAT(refuse(fixed_at("x", {1, 3, 8})), HasSubstr("has 3 sizes"));
  EXPECT_THAT(refuse(fixed_at("x", {1, 4, 8, 8})),
              testing::AllOf(HasSubstr("size 4 of axis 1 of input x"),
                             HasSubstr("\n  --shapes=nobody:1,x:1x4x8x8\n                        ^\n")));
  EXPECT_THAT(refuse(fixed_at("fixed", {2, 3})), HasSubstr("Static model does not take explicit shapes"));
  EXPECT_EQ(refuse(fixed_at("fixed", {2, 2})), "no error");
}

std::vector<NetworkTensor> rows_in_and_out() {
  return {{.name = "x", .dims = {-1, 4}, .sizes = "n,4"}, {.name = "y", .is_input = false, .dims = {-1, 4}}};
}

TEST(EngineShapes, AreTheOptAfterABuildAndTheSmallestAfterALoad) {
  const PlanProfile profile{.ranges = {{"x", {2, 4}, {4, 4}, {8, 4}}}};
  const auto shapes = [&](const ShapeMap& asked, bool built) {
    return engine_shapes(rows_in_and_out(), profile, asked, {}, built, silent_logger());
  };
  EXPECT_THAT(shapes({}, true).at("x"), ElementsAre(4, 4));
  EXPECT_THAT(shapes({}, false).at("x"), ElementsAre(2, 4));
  EXPECT_THAT(shapes({{"x", {3, 4}}}, false).at("x"), ElementsAre(3, 4));
  EXPECT_THAT(error_of([&] { shapes({{"z", {3, 4}}}, false); }), HasSubstr("z"));
}

TEST(InputFiles, AreFoundByNameOrByOneStar) {
  const NamedTexts files{{"a*", "star"}, {"ab", "exact"}};
  EXPECT_EQ(*input_file(files, "ab"), "exact");
  EXPECT_EQ(*input_file(files, "abc"), "star");
  EXPECT_EQ(input_file(files, "b"), nullptr);
  EXPECT_THAT(error_of([&] {
                check_input_files({{"nobody", "f"}}, rows_in_and_out());
              }),
              HasSubstr("Invalid tensor names found in --loadInputs flag."));
}

TEST(InputFiles, MayBeLongerButNotShorterThanTheTensor) {
  const TestFolder folder;
  const std::string path = folder.file("input.raw");
  write_file(path, "abcdef");
  std::array<std::byte, 4> memory{};
  load_raw(path, memory);
  EXPECT_EQ(memory[3], std::byte{'d'});
  std::array<std::byte, 16> longer{};
  EXPECT_THAT(error_of([&] { load_raw(path, longer); }),
              testing::AllOf(HasSubstr("Unexpected file size for input file"), HasSubstr("16"), HasSubstr("6")));
  std::filesystem::remove(path);
  EXPECT_THAT(error_of([&] { load_raw(path, memory); }), HasSubstr("Cannot open file " + path + "!"));
}

TEST(RandomInputs, RepeatAndStayInRange) {
  std::array<float, 64> first{}, second{};
  fill_random({"x", DType::f32}, {64}, std::as_writable_bytes(std::span(first)));
  fill_random({"x", DType::f32}, {64}, std::as_writable_bytes(std::span(second)));
  EXPECT_EQ(first, second);
  for (const float value : first) EXPECT_LE(std::abs(value), 1);
  fill_random({"y", DType::f32}, {64}, std::as_writable_bytes(std::span(second)));
  EXPECT_NE(first, second);
  std::array<int64_t, 64> indices{};
  fill_random({"x", DType::i64}, {64}, std::as_writable_bytes(std::span(indices)));
  EXPECT_THAT(indices, testing::Each(testing::AnyOf(0, 1)));
  fill_random({"x", DType::i64, Layout::linear, RandomRange{3, 5}}, {64}, std::as_writable_bytes(std::span(indices)));
  EXPECT_THAT(indices, testing::Each(testing::AnyOf(3, 4, 5)));
  EXPECT_THAT(indices, testing::AllOf(testing::Contains(3), testing::Contains(5)));
}

double loss(const std::string& algorithm, const std::vector<double>& found, const std::vector<double>& reference) {
  return accuracy_loss({.algorithm = algorithm, .atol = 0.1, .rtol = 0.5}, found, reference);
}

TEST(AccuracyLoss, FollowsTheFiveDefinitions) {
  const std::vector<double> found{1, 2, 3, 4}, reference{1, 1, 1, -4};
  EXPECT_DOUBLE_EQ(loss("l0", found, reference), 0.75);  // the first agrees; 1 > 0.1 + 0.5, 2 > 0.6, 8 > 2.1
  EXPECT_DOUBLE_EQ(loss("l1", found, reference), 11.0 / 4);
  EXPECT_DOUBLE_EQ(loss("l2", found, reference), 69.0 / 4);
  EXPECT_DOUBLE_EQ(loss("lInf", found, reference), 8);
  EXPECT_DOUBLE_EQ(loss("cos", found, reference), 1 + 10 / std::sqrt(30.0 * 19));
  EXPECT_DOUBLE_EQ(loss("l0", {2.1}, {1.4}), 0);  // 0.7 <= 0.1 + 0.5 * 1.4
}

TEST(AccuracyLoss, CountsNaNInOneOfThemAlone) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(loss("l0", {nan, 1}, {1, 1}), 0.5);
  EXPECT_EQ(loss("l0", {nan, infinity}, {nan, infinity}), 0);
  EXPECT_EQ(loss("lInf", {1}, {nan}), infinity);
  EXPECT_EQ(loss("cos", {nan}, {1}), 1);
}

TEST(Progress, TellsHowMuchIsDoneAndLeft) {
  EXPECT_EQ(progress_text(6, 24, "layers tuned", 2), "[######..................] 6 of 24 layers tuned, about 6 s left");
  EXPECT_EQ(progress_text(0, 24, "layers tuned", 2), "[........................] 0 of 24 layers tuned");
  EXPECT_EQ(progress_text(24, 24, "layers tuned", 2), "[########################] 24 of 24 layers tuned");
  EXPECT_THAT(progress_text(1, 100, "layers tuned", 3), HasSubstr("about 4 min 57 s left"));
}

TEST(Progress, IsSilentWhereThereIsNoTerminal) {
  const TestFolder folder;
  const std::string path = folder.file("progress");
  std::FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  {
    Progress progress(file);
    const hone_progress told = progress.of_build(nullptr);
    told.begin(told.user, "tune", "profile 0", 2);
    EXPECT_EQ(told.step(told.user, "tune", 1), 0);
  }
  std::fclose(file);
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

}  // namespace
}  // namespace hone
