// SPDX-License-Identifier: Apache-2.0
//
// What a build chooses where nothing is timed, from offers of a source that has no kernels.
#include "builder/tune.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "builder/regions.h"
#include "device/device_testing.h"
#include "ops/all.h"

namespace hone {
namespace {

constexpr std::string_view kNet = R"((%x: f32[64,256]) {
  %w = constant f32[256,128]!1
  %y = Linear(%x, %w) "fc" ["fc"]
  return %y
})";

struct Offer {
  std::string name;
  Cost cost;
};

class Catalogue final : public TacticSource {
 public:
  explicit Catalogue(std::vector<Offer> offers) : offers_(std::move(offers)) {}
  std::string_view name() const override { return "catalogue"; }
  void propose(const Problem&, Candidates& out) const override {
    for (const Offer& offer : offers_) out.offer({"catalogue", offer.name, {}, {Layout::linear}, {Layout::linear}});
  }
  Compiled compile(const Problem&, const Tactic& tactic) const override {
    throw Error("compiled to be timed: " + tactic.name);
  }
  Cost cost(const Problem&, const Tactic& tactic) const override {
    return std::ranges::find(offers_, tactic.name, &Offer::name)->cost;
  }

 private:
  std::vector<Offer> offers_;
};

/// What is left of a build when its tactics are chosen.
struct Chosen {
  Chosen(std::vector<Offer> offers, const BuildOptions& options) {
    const Catalogue source(std::move(offers));
    const TacticSource* const sources[] = {&source};
    const Backend backend{"test", nullptr, nullptr, nullptr, sources, [] { return std::string(); }};
    TestDevice device;
    TimingCache cache;
    BuildSession session(parse_graph(kNet, find_op), options, backend, device, cache, {});
    const ProfilePoints& points = session.prepared.profiles.front();
    const Choice choice = choose(session, points, make_layers(session, points));
    const Layer& layer = choice.layers.front();
    for (const Candidate& candidate : layer.candidates) order.push_back(candidate.tactic.name);
    const Candidate& taken = layer.candidates[static_cast<size_t>(layer.chosen)];
    name = taken.tactic.name;
    timing = taken.timing;
  }
  std::vector<std::string> order;
  std::string name;
  Timing timing;
};

const std::vector<Offer> kOffers{
    {"slow", {.arithmetic = 4}}, {"fast", {.arithmetic = 1.5}}, {"middle", {.arithmetic = 2}}};

TEST(Tune, TakesTheLeastEstimateAtLevelZero) {
  const Chosen chosen(kOffers, {.optimization_level = 0});
  EXPECT_EQ(chosen.name, "fast");
  EXPECT_EQ(chosen.timing.note, kEstimated);
  const double flops = 2.0 * 64 * 256 * 128;
  EXPECT_DOUBLE_EQ(chosen.timing.ms, NominalRates().launch_ms + 1e3 * 1.5 * flops / NominalRates().f32_flops);
}

TEST(Tune, TakesTheLeastEstimateWhenTheBudgetIsSpent) {
  const Chosen chosen(kOffers, {.optimization_level = 5, .budget_seconds = 0});
  EXPECT_EQ(chosen.name, "fast");
  EXPECT_EQ(chosen.timing.note, kEstimated);
}

TEST(Tune, TriesTheBestGuessFirst) {
  EXPECT_EQ(Chosen(kOffers, {.optimization_level = 0}).order, (std::vector<std::string>{"fast", "middle", "slow"}));
}

TEST(Tune, CutsOffTheWorstGuesses) {
  EXPECT_EQ(Chosen(kOffers, {.optimization_level = 0, .max_tactics = 1}).order, std::vector<std::string>{"fast"});
}

TEST(Tune, LeavesEqualEstimatesInTheOrderOfTheOffers) {
  EXPECT_EQ(Chosen({{"first", {}}, {"second", {}}}, {.optimization_level = 0}).name, "first");
  EXPECT_EQ(Chosen({{"second", {}}, {"first", {}}}, {.optimization_level = 0}).name, "second");
}

TEST(Tune, AnAttentionMayRoundItsResultOrLeaveItToAnotherLayer) {
  const auto graph_of = [](std::string_view results) {
    return parse_graph(fmt::format(R"((%q: f16[2,N,4,64], %k: f16[2,70,4,64], %v: f16[2,70,4,64]) {{
      %y = ScaledDotProductAttention(%q, %k, %v) {{scale=0.125, layout="bshd"}} "attention"
      %z = EncodeFloat8(%y) {{scale=0.01}} "codes"
      return {}
    }})",
                                   results),
                       find_op);
  };
  const Graph rounded = graph_of("%z"), read_twice = graph_of("%z, %y");
  const std::vector<Region> regions = form_regions(rounded);
  ASSERT_EQ(regions.size(), 1U);
  EXPECT_EQ(regions[0].name(), "attention + codes");
  const std::vector<Region> parts = split(regions[0], rounded);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].name(), "attention");
  EXPECT_EQ(parts[1].name(), "codes");
  EXPECT_EQ(form_regions(read_twice).size(), 2U);
}

TEST(Tune, WhatANetworkIsGivenIsRoundedAndCastInOnePass) {
  const Graph graph = parse_graph(R"((%x: f32[N,3,8,8]) {
    %q = FakeQuantize(%x) {scale=0.02} "q"
    %z = Cast(%q) {to="f16"} "z"
    return %z
  })",
                                  find_op);
  const std::vector<Region> regions = form_regions(graph);
  ASSERT_EQ(regions.size(), 1U);
  EXPECT_EQ(regions[0].name(), "q + z");
  EXPECT_EQ(split(regions[0], graph).size(), 2U);
}

}  // namespace
}  // namespace hone
