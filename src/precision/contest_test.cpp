// SPDX-License-Identifier: Apache-2.0
//
// Decisions over engines whose times are given, not measured.
#include "precision/contest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "base/error.h"

namespace hone {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Pair;

/// Times of an engine's two layers, "front" and "back", and its error.
struct Given {
  double front, back, error = 0;
};

class GivenTimes final : public Contender {
 public:
  GivenTimes(std::string called, const Given& given) : name(std::move(called)), given_(given) {}
  double error() const override { return given_.error; }
  double burst() override { return given_.front + given_.back; }
  std::vector<LayerTime> layer_times() override { return {{{"front"}, given_.front}, {{"back"}, given_.back}}; }

  const std::string name;

 private:
  const Given given_;
};

class Record final : public BuildListener {
 public:
  void precision_refused(std::string_view types, std::string_view) override { refused.emplace_back(types); }
  void precision_chosen(std::string_view types) override { chosen = types; }
  std::vector<std::string> refused;
  std::string chosen;
};

struct Outcome {
  std::string winner;
  std::vector<std::string> entered, refused;
  std::map<std::string, BuildOptions> options;
};

/// Variants without times cannot be built.
Outcome outcome_of(const std::map<std::string, Given>& times, BuildOptions options = {}) {
  options.bf16 = options.int8 = true;
  std::vector<Variant> variants;
  for (const auto& [name, type] : {std::pair("FP32", "fp32"), std::pair("BF16", "bf16"), std::pair("INT8", "int8")}) {
    BuildOptions allowed = options;
    allowed.bf16 = name == std::string("BF16");
    allowed.int8 = name == std::string("INT8");
    variants.push_back({name, type, allowed});
  }
  Outcome outcome;
  Record record;
  const Enter enter = [&](const Variant& variant) -> std::unique_ptr<Contender> {
    outcome.entered.push_back(variant.name);
    outcome.options[variant.name] = variant.options;
    if (!times.contains(variant.name)) throw Error("no such kernels");
    return std::make_unique<GivenTimes>(variant.name, times.at(variant.name));
  };
  const auto winner = contest(variants, options, enter, {&record});
  outcome.winner = static_cast<const GivenTimes&>(*winner).name;
  outcome.refused = record.refused;
  EXPECT_EQ(record.chosen, outcome.winner);
  return outcome;
}

TEST(Contest, TheFastestIsTaken) {
  EXPECT_EQ(outcome_of({{"FP32", {5, 5}}, {"BF16", {2, 2}}, {"INT8", {3, 3}}}).winner, "BF16");
  EXPECT_EQ(outcome_of({{"FP32", {5, 5}}, {"BF16", {6, 6}}, {"INT8", {7, 7}}}).winner, "FP32");
}

TEST(Contest, FewerBitsHaveToBeClearlyFaster) {
  EXPECT_EQ(outcome_of({{"FP32", {5, 5}}, {"BF16", {4.95, 4.95}}, {"INT8", {5, 5}}}).winner, "FP32");
}

TEST(Contest, AMixtureOfTheFastPartsEnters) {
  const Outcome outcome = outcome_of({{"FP32", {1, 9}}, {"BF16", {4, 4}}, {"INT8", {5, 2}}, {"mixed", {1, 2}}});
  EXPECT_EQ(outcome.winner, "mixed");
  const BuildOptions& mixed = outcome.options.at("mixed");
  EXPECT_TRUE(mixed.int8);
  EXPECT_FALSE(mixed.bf16);
  EXPECT_THAT(mixed.layer_types, ElementsAre(Pair("*", "int8"), Pair("front", "fp32")));
}

TEST(Contest, AMixtureThatIsNoFasterIsNotTaken) {
  EXPECT_EQ(outcome_of({{"FP32", {1, 9}}, {"BF16", {4, 4}}, {"INT8", {5, 2}}, {"mixed", {3, 4}}}).winner, "INT8");
}

TEST(Contest, WhatTheUserAskedOfALayerStays) {
  const Outcome outcome = outcome_of({{"FP32", {1, 9}}, {"BF16", {9, 9}}, {"INT8", {5, 2}}, {"mixed", {1, 2}}},
                                     {.layer_types = {{"front", "int8"}}});
  EXPECT_THAT(outcome.options.at("mixed").layer_types, ElementsAre(Pair("*", "int8"), Pair("front", "int8")));
}

TEST(Contest, WhatIsTooFarFromFp32IsRefused) {
  const std::map<std::string, Given> times{{"FP32", {5, 5}}, {"BF16", {4, 4, 0.01}}, {"INT8", {1, 1, 0.1}}};
  EXPECT_EQ(outcome_of(times).winner, "INT8");
  const Outcome strict = outcome_of(times, {.accuracy_budget = 0.05});
  EXPECT_EQ(strict.winner, "BF16");
  EXPECT_THAT(strict.refused, Contains("INT8"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(outcome_of({{"FP32", {5, 5}}, {"BF16", {6, 6}}, {"INT8", {1, 1, nan}}}).winner, "FP32");
}

TEST(Contest, ATypeThatCannotBeBuiltIsLeftOut) {
  const Outcome outcome = outcome_of({{"FP32", {5, 5}}, {"INT8", {1, 1}}});
  EXPECT_EQ(outcome.winner, "INT8");
  EXPECT_THAT(outcome.refused, ElementsAre("BF16"));
}

TEST(Contest, ABuildThatIsStoppedTakesWhatItHas) {
  const Outcome outcome = outcome_of({{"FP32", {5, 5}}, {"BF16", {1, 1}}}, {.stop = [] { return true; }});
  EXPECT_EQ(outcome.winner, "FP32");
  EXPECT_THAT(outcome.entered, ElementsAre("FP32"));
}

}  // namespace
}  // namespace hone
