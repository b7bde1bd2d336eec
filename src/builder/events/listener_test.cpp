// SPDX-License-Identifier: Apache-2.0
//
// What a build tells of a small net: all phases in order, and in each of them what a reader of a log asks for.
#include "builder/events/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/all.h"
#include "builder/build.h"
#include "builder/events/layer_records.h"
#include "builder/events/log_lines.h"
#include "builder/tune.h"
#include "ops/all.h"

namespace hone {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kNet = R"((%x: f32[N,3,12,12]) {
  %w1 = constant f32[16,3,3,3]!1
  %wf = constant f32[16,10]!4
  %c1 = Conv(%x, %w1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, 1]} "conv" ["conv"]
  %r1 = Relu(%c1) "relu" ["relu"]
  %p = GlobalAveragePool(%r1) "pool" ["pool"]
  %f = View(%p) {shape=["N", "16"]} "flatten" ["flatten"]
  %y = Linear(%f, %wf) "fc" ["fc"]
  return %y
})";

const ProfileOptions kBatches = {{"x", {{1, 3, 12, 12}, {2, 3, 12, 12}, {4, 3, 12, 12}}}};

/// Keeps what it is told, and the names of events without repeats in a row.
class Recorder : public BuildListener {
 public:
  void shape_assumed(const Value& input, const Dims& dims) override {
    note("shape_assumed");
    assumed.emplace_back(input.name, dims);
  }
  void pass_said(Severity, std::string_view) override { note("pass_said"); }
  void stays_linear(const Value& edge, Layout) override { note("stays_linear " + edge.name); }
  void tuning_begun(bool times_are_kept) override { note(times_are_kept ? "tuning_begun, kept" : "tuning_begun"); }
  void profile_begun(size_t index, size_t count) override { note(fmt::format("profile {} of {}", index, count)); }
  void layer_timed(const Layer& layer, const ProfilePoints& points, double seconds) override {
    note("layers");
    EXPECT_GE(seconds, 0);
    EXPECT_TRUE(points.opt.contains("N"));
    timed.push_back({layer.region.name(), layer.candidates, layer.refusals});
  }
  void tuning_advanced(size_t layers, size_t total) override {
    note("layers");
    EXPECT_EQ(layers, ++done);
    of = total;
  }
  void tuning_cut_short(size_t by_rule, size_t) override { note(fmt::format("{} by rule", by_rule)); }
  void reformats_begun() override { note("reformats"); }
  void reformat_timed(const Value&, const Candidate& fastest, const ProfilePoints&) override {
    note("reformats");
    EXPECT_GT(fastest.timing.ms, 0);
  }
  void tactics_chosen(const Choice& choice, double) override {
    note("chosen");
    for (const Layer& layer : choice.layers)
      chosen[layer.region.name()] =
          layer.chosen < 0 ? "view" : layer.candidates[static_cast<size_t>(layer.chosen)].tactic.text();
  }
  void reformat_added(const Step& step, Layout from, Layout to) override {
    EXPECT_EQ(step.kind, "Reformat");
    EXPECT_NE(from, to);
  }
  void lowered(const Profile& profile, double) override {
    note("lowered");
    arena_bytes = profile.arena_bytes;
  }
  void memory_planned(const MemoryUse& use) override {
    note("memory");
    memory = use;
  }
  void host_shared(const HostShare&) override { note("host"); }
  void finished(const Plan& plan, const CacheUse& use, double seconds) override {
    note("finished");
    EXPECT_EQ(plan.log.size(), of);
    EXPECT_GE(seconds, 0);
    cache = use;
  }

  struct Timed {
    std::string layer;
    std::vector<Candidate> candidates;
    std::vector<Candidates::Refusal> refusals;
  };
  std::vector<std::string> events;
  std::vector<std::pair<std::string, Dims>> assumed;
  std::vector<Timed> timed;
  std::map<std::string, std::string> chosen;
  size_t done = 0, of = 0;
  int64_t arena_bytes = 0;
  MemoryUse memory;
  CacheUse cache;

 private:
  void note(std::string event) {
    if (events.empty() || events.back() != event) events.push_back(std::move(event));
  }
};

Plan build_net(const BuildOptions& options, TimingCache& cache, const Listeners& listeners) {
  const Backend* backend = find_backend("cpu");
  const std::unique_ptr<Device> device = backend->open(0);
  return build(parse_graph(kNet, find_op), options, *backend, *device, cache, listeners);
}

struct Told : Recorder {
  explicit Told(const BuildOptions& options) { plan = build_net(options, times, {this}); }
  TimingCache times;
  Plan plan;
};

TEST(BuildListener, IsToldTheStagesInOrder) {
  const Told told({.profiles = {kBatches}});
  EXPECT_THAT(told.events, ElementsAre("pass_said", "tuning_begun", "profile 0 of 1", "layers", "reformats", "chosen",
                                       "lowered", "memory", "finished"));
  EXPECT_EQ(told.done, told.of);
  EXPECT_THAT(told.assumed, IsEmpty());
}

TEST(BuildListener, SeesEveryCandidateWithItsTimeAndEveryRefusalWithItsReason) {
  const Told told({.profiles = {kBatches}});
  ASSERT_EQ(told.timed.size(), 3u) << "conv + relu, pool, fc; the view has nothing to time";
  size_t refusals = 0;
  for (const Recorder::Timed& layer : told.timed) {
    EXPECT_THAT(layer.candidates, Not(IsEmpty())) << layer.layer;
    for (const Candidate& candidate : layer.candidates) {
      EXPECT_TRUE(candidate.timing.ms > 0 || !candidate.timing.note.empty()) << candidate.tactic.text();
      EXPECT_EQ(told.times.find(candidate.key) == nullptr, candidate.tactic.source == "reference");
    }
    for (const Candidates::Refusal& refusal : layer.refusals) EXPECT_THAT(refusal.reason, Not(IsEmpty()));
    refusals += layer.refusals.size();
  }
  EXPECT_GT(refusals, 0u);
}

TEST(BuildListener, SeesTheChoiceAmongWhatWasTimed) {
  const Told told({.profiles = {kBatches}});
  EXPECT_EQ(told.chosen.at("flatten"), "view");
  for (const Recorder::Timed& layer : told.timed) {
    std::vector<std::string> tactics;
    for (const Candidate& candidate : layer.candidates) tactics.push_back(candidate.tactic.text());
    EXPECT_THAT(tactics, Contains(told.chosen.at(layer.layer)));
  }
}

TEST(BuildListener, SeesMemoryAndTheUseOfTheCache) {
  const Told told({.profiles = {kBatches}});
  EXPECT_EQ(told.memory.inputs, 1u);
  EXPECT_EQ(told.memory.outputs, 1u);
  EXPECT_GT(told.memory.blocks, 0u);
  EXPECT_GT(told.memory.bytes, 0);
  EXPECT_EQ(told.memory.bytes, told.arena_bytes);
  EXPECT_EQ(told.cache.entries, told.times.entries());
  EXPECT_EQ(told.cache.added, told.times.entries()) << "the cache began empty";
}

TEST(BuildListener, IsToldWhatTheUserDidNotSayOrCannotHave) {
  const Told told(
      {.optimization_level = 0, .output_formats = {{.layout = Layout::channels_last}}, .budget_seconds = 0});
  EXPECT_THAT(told.events, Contains("stays_linear y"));
  ASSERT_EQ(told.assumed.size(), 1u);
  EXPECT_EQ(told.assumed[0].first, "x");
  EXPECT_EQ(told.assumed[0].second, (Dims{1, 3, 12, 12}));
}

TEST(BuildListener, IsToldWhenTuningEndsEarly) {
  const Told told({.profiles = {kBatches}, .budget_seconds = 0});
  EXPECT_THAT(told.events, Contains("3 by rule"));
}

TEST(BuildListener, SurveysTellOfLayersAndChooseNothing) {
  const Backend* backend = find_backend("cpu");
  const std::unique_ptr<Device> device = backend->open(0);
  Recorder told;
  EXPECT_EQ(survey(parse_graph(kNet, find_op), {.profiles = {kBatches}}, *backend, *device, {&told}).size(), 4u);
  EXPECT_THAT(told.events, ElementsAre("pass_said", "layers"));
}

TEST(LayerRecords, AreThoseThatThePlanKeeps) {
  LayerRecords records;
  TimingCache cache;
  const Plan plan = build_net({.profiles = {kBatches, kBatches}}, cache, {&records});
  const std::vector<LayerRecord> kept = records.take();
  ASSERT_EQ(kept.size(), 8u);
  ASSERT_EQ(plan.log.size(), 8u);
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].layer, plan.log[i].layer);
    EXPECT_EQ(kept[i].chosen, plan.log[i].chosen);
    EXPECT_EQ(kept[i].candidates.size(), plan.log[i].candidates.size());
  }
}

TEST(LogLines, AreThoseOfTheOriginal) {
  std::vector<std::string> lines;
  Logger log([&](Severity, std::string_view line) { lines.emplace_back(line); });
  log.set_threshold(Severity::verbose);
  LogLines listener(log);
  TimingCache cache;
  build_net({.profiles = {kBatches}, .optimization_level = 0}, cache, {&listener});
  EXPECT_THAT(lines, Contains("Local timing cache in use. Profiling results in this builder pass will not be stored."));
  EXPECT_THAT(lines, Contains("Constructing optimization profile number 0 [1/1]."));
  EXPECT_THAT(lines, Contains("=============== Computing costs for conv + relu"));
  EXPECT_THAT(lines, Contains(HasSubstr("Autotuning format combination: Float(")));
  EXPECT_THAT(lines, Contains("Detected 1 inputs and 1 output network tensors."));
  EXPECT_THAT(lines, Contains("Engine Layer Information:"));
  EXPECT_THAT(lines, Contains("Timing cache: 0 entries, 0 of them new, served 0 hits since creation."));
}

TEST(LogLines, StayBelowTheThreshold) {
  std::vector<std::string> lines;
  const Logger log([&](Severity severity, std::string_view line) {
    EXPECT_LE(severity, Severity::info);
    lines.emplace_back(line);
  });
  LogLines listener(log);
  TimingCache cache;
  build_net({.profiles = {kBatches}, .optimization_level = 0}, cache, {&listener});
  EXPECT_EQ(lines.size(), 5u) << "cache, choice, network tensors, memory, end";
}

}  // namespace
}  // namespace hone
