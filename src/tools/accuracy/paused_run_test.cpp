// SPDX-License-Identifier: Apache-2.0
//
// Inferences that stop behind each step: what is read and written between the steps.
#include "tools/accuracy/paused_run.h"

#include <gtest/gtest.h>

#include "backends/all.h"
#include "builder/build.h"
#include "ops/all.h"
#include "tensor/difference.h"
#include "tools/accuracy/counterparts.h"

namespace hone {
namespace {

constexpr std::string_view kNet = R"((%x: f32[1,8,6,6]) {
  %w1 = constant f32[8,8,3,3]!1
  %w2 = constant f32[8,8,3,3]!2
  %c = Conv(%x, %w1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]} "conv1" ["conv1"]
  %r = Relu(%c) "relu1" ["relu1"]
  %y = Conv(%r, %w2) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]} "conv2" ["conv2"]
  return %y
})";

std::unique_ptr<RunningPlan> running(std::string_view net) {
  const Backend& cpu = *find_backend("cpu");
  const std::shared_ptr<Device> device = cpu.open(0);
  TimingCache cache;
  const BuildOptions options{.optimization_level = 0};
  return std::make_unique<RunningPlan>(build(parse_graph(net, find_op), options, cpu, *device, cache), cpu, device,
                                       Sample(), nullptr);
}

std::vector<std::string> names_of(PausedRun& run) {
  std::vector<std::string> names;
  while (const Step* step = run.next()) names.push_back(step->name);
  return names;
}

TEST(PausedRun, StopsBehindEveryStepAndEndsAsTheInferenceDoes) {
  const auto plan = running(kNet);
  const NamedTensors before = plan->outputs();
  std::vector<std::string> steps;
  for (const Step& step : plan->plan().profiles[0].steps) steps.push_back(step.name);
  PausedRun run(*plan, {});
  EXPECT_EQ(names_of(run), steps);
  EXPECT_EQ(run.next(), nullptr);
  EXPECT_EQ(relative_difference(plan->outputs().at("y"), before.at("y")), 0);
}

TEST(PausedRun, TwoOfThemTakeTurnsAndAreAbandonedAnywhere) {
  const auto first = running(kNet), second = running(kNet);
  for (size_t steps = 0; steps < first->plan().profiles[0].steps.size(); ++steps) {
    PausedRun a(*first, {}), b(*second, {});
    for (size_t i = 0; i < steps; ++i) EXPECT_EQ(a.next()->name, b.next()->name);
  }
}

TEST(PausedRun, WhatIsPutIntoABufferIsWhatLaterStepsRead) {
  const auto plan = running(kNet);
  PausedRun run(*plan, {});
  while (const Step* step = run.next()) {
    if (step->name.find("relu1") == std::string::npos) continue;
    const std::optional<Tensor> value = run.context().buffer_value(step->outputs[0]);
    ASSERT_TRUE(value);
    EXPECT_EQ(value->dims(), (Dims{1, 8, 6, 6}));
    run.context().set_buffer_value(step->outputs[0], rounded(std::vector<float>(static_cast<size_t>(value->size())),
                                                             DType::f32, value->dims(), {}));
  }
  for (const float y : plan->outputs().at("y").data<float>()) EXPECT_EQ(y, 0);
}

TEST(Counterparts, BytesAreRoundedToTheNearestCodeAndClipped) {
  const TensorScale scale{0.5f, 3};
  const std::vector<float> values{0, 0.24f, 0.25f, 0.75f, -100, 100};
  const Tensor codes = rounded(values, DType::i8, {6}, scale);
  const std::vector<int8_t> expected{3, 3, 3, 5, -128, 127};  // halves to even before the zero point is added
  EXPECT_TRUE(std::ranges::equal(codes.data<int8_t>(), expected));
  EXPECT_EQ(*real_values(codes, scale), (std::vector<float>{0, 0, 0, 1, -65.5f, 62}));
  EXPECT_EQ(limits_of(DType::i8, scale)->high, 62);
  EXPECT_FALSE(real_values(codes, std::nullopt));
}

TEST(Counterparts, QuantisedTensorsStandForWhatTheyWereMadeOf) {
  const Graph graph = parse_graph(R"((%x: f32[4]) {
  %s = constant f32[]{0.25}
  %z = constant i8[]{0}
  %r = Relu(%x)
  %q = QuantizeLinear(%r, %s, %z) {axis=1, block_size=0}
  %d = DequantizeLinear(%q, %s, %z) {axis=1, block_size=0}
  %y = Sigmoid(%d)
  return %y
})",
                                  find_op);
  const auto found = counterparts_in(graph);
  EXPECT_EQ(found.at("q").tensor, "r");
  EXPECT_EQ(found.at("q").scale->scale, 0.25f);
  EXPECT_EQ(found.at("d").tensor, "r");
  EXPECT_FALSE(found.at("d").scale);
  EXPECT_EQ(found.at("y").tensor, "y");
}

}  // namespace
}  // namespace hone
