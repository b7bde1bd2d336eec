// SPDX-License-Identifier: Apache-2.0
//
// Networks whose head goes entry by entry, on a device that calls its last cache small: the same results, profiles that add up.
#include "builder/prepare/by_entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "backends/all.h"
#include "backends/cpu/run/device.h"
#include "builder/build.h"
#include "ops/all.h"
#include "runtime/engine.h"
#include "tuner/few_rows.h"

namespace hone {
namespace {

using testing::Each;
using testing::Gt;

// Squeeze and excitation, a skip over the end of the head, a batch that is a result itself.
constexpr std::string_view kNet = R"((%x: f32[N,3,32,32]) {
  %w1 = constant f32[16,3,3,3]!1
  %w2 = constant f32[16,16,3,3]!2
  %e1 = constant f32[4,16,1,1]!3
  %e2 = constant f32[16,4,1,1]!4
  %w3 = constant f32[8,16,3,3]!5
  %wf = constant f32[8,10]!6
  %c1 = Conv(%x, %w1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]} "conv1" ["conv1"]
  %r1 = Relu(%c1) "relu1" ["relu1"]
  %p1 = GlobalAveragePool(%r1) "pool1" ["pool1"]
  %q1 = Conv(%p1, %e1) {kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1], dilations=[1, 1]} "squeeze" ["squeeze"]
  %q2 = Conv(%q1, %e2) {kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1], dilations=[1, 1]} "excite" ["excite"]
  %g = Sigmoid(%q2) "gate" ["gate"]
  %m = Mul(%r1, %g) "scale" ["scale"]
  %c2 = Conv(%m, %w2) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]} "conv2" ["conv2"]
  %s = Add(%c2, %r1) "add" ["add"]
  %c3 = Conv(%s, %w3) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, 1]} "conv3" ["conv3"]
  %p = GlobalAveragePool(%c3) "pool" ["pool"]
  %f = View(%p) {shape=["N", "8"]} "flatten" ["flatten"]
  %y = Linear(%f, %wf) "fc" ["fc"]
  return %y, %s
})";

/// The same of gray images, which lie alike with channels first and last, of 899 numbers: most entries begin at an odd place.
std::string gray_net() {
  std::string text(kNet);
  for (const auto& [color, gray] : {std::pair{"f32[N,3,32,32]", "f32[N,1,31,29]"}, {"f32[16,3,3,3]", "f32[16,1,3,3]"}})
    text.replace(text.find(color), std::string_view(color).size(), gray);
  return text;
}

struct SmallCache {
  const Backend* backend = find_backend("cpu");
  std::shared_ptr<Device> device;
  explicit SmallCache(int64_t bytes)
      : device(std::make_shared<cpu::CpuDevice>(cpu::DeviceOptions{.shared_cache_bytes = bytes})) {}
};

ProfileOptions batches(int64_t min, int64_t opt, int64_t max, Dims image = {3, 32, 32}) {
  const auto of = [&](int64_t count) { return Dims{count, image[0], image[1], image[2]}; };
  return {{"x", {of(min), of(opt), of(max)}}};
}

Plan build_on(const SmallCache& cpu, BuildOptions options, std::string_view net = kNet) {
  TimingCache cache;
  options.min_timing = options.timing_repeats = 1;
  return build(parse_graph(net, find_op), options, *cpu.backend, *cpu.device, cache);
}

size_t steps_by_entry(const Plan& plan) {
  return static_cast<size_t>(std::ranges::count_if(plan.profiles[0].steps, &Step::by_entry));
}

void expect_like_reference(ExecutionContext& context, int64_t batch, std::string_view net = kNet) {
  const Graph reference = parse_graph(net, find_op).specialize({{"N", batch}});
  const std::vector<Tensor> inputs = random_inputs(reference, static_cast<uint64_t>(batch)),
                            expected = evaluate(reference, inputs);
  context.set_shape("x", inputs[0].dims());
  AlignedBuffer x(inputs[0].bytes().size()), y(expected[0].bytes().size()), s(expected[1].bytes().size());
  std::memcpy(x.data(), inputs[0].bytes().data(), inputs[0].bytes().size());
  const IoTensor &first = context.engine().plan().io[1], &second = context.engine().plan().io[2];
  context.bind("x", x.data());
  context.bind(first.name, y.data());
  context.bind(second.name, s.data());
  const std::unique_ptr<Stream> stream = context.engine().device().stream();
  for (int i = 0; i < 3; ++i) context.enqueue(*stream);
  stream->synchronize();
  for (const auto& [found, wanted] : {std::pair{&y, &expected[0]}, std::pair{&s, &expected[1]}}) {
    const auto* values = reinterpret_cast<const float*>(found->data());
    for (int64_t i = 0; i < wanted->size(); ++i)
      ASSERT_NEAR(values[i], wanted->real(i), 1e-4 * (1 + std::abs(wanted->real(i))))
          << "batch " << batch << " at " << i;
  }
}

TEST(ByEntry, TheHeadOfALargeBatchDoes) {
  const SmallCache small(400'000), large(int64_t{1} << 40);
  EXPECT_EQ(steps_by_entry(build_on(large, {.profiles = {batches(8, 8, 8)}})), 0u);
  EXPECT_EQ(steps_by_entry(build_on(small, {.profiles = {batches(1, 1, 8)}})), 0u);
  const Plan plan = build_on(small, {.profiles = {batches(8, 8, 8)}});
  EXPECT_GE(steps_by_entry(plan), 3u);
  EXPECT_LT(steps_by_entry(plan), plan.profiles[0].steps.size());
}

TEST(ByEntry, ResultsAreThoseOfTheWholeBatch) {
  const SmallCache cpu(400'000);
  for (const int level : {0, 1})
    for (const ProfileOptions& profile : {batches(6, 6, 6), batches(1, 6, 9)}) {
      Plan plan = load_plan(Blob::copy(save_plan(build_on(cpu, {.profiles = {profile}, .optimization_level = level}))));
      ASSERT_GT(steps_by_entry(plan), 0u);
      const auto context = Engine::load(std::move(plan), *cpu.backend, cpu.device)->context();
      context->set_poison(true);
      for (const int64_t batch : {6, 1, 9, 2, 6})
        if (batch == 6 || profile.begin()->second.min[0] == 1) expect_like_reference(*context, batch);
    }
}

TEST(ByEntry, GrayImagesGoOnePerRound) {
  const SmallCache cpu(400'000);
  const std::string net = gray_net();
  Plan plan = build_on(cpu, {.profiles = {batches(1, 6, 9, {1, 31, 29})}}, net);
  ASSERT_GT(steps_by_entry(plan), 0u);
  const auto context = Engine::load(std::move(plan), *cpu.backend, cpu.device)->context();
  for (const int64_t batch : {6, 1, 9}) expect_like_reference(*context, batch, net);
}

/// What lies in an entry of x: as large as it or not.
Plan plan_with_view_of_entry(const SmallCache& cpu, int64_t rows) {
  Plan plan = build_on(cpu, {.profiles = {batches(6, 6, 6)}});
  std::vector<BufferSlot>& buffers = plan.profiles[0].buffers;
  const auto entry = std::ranges::find_if(buffers, &BufferSlot::entry);
  BufferSlot view{.name = "view", .type = entry->type, .alias = static_cast<BufferId>(entry - buffers.begin())};
  view.type.shape[0] = Dim(rows);
  buffers.push_back(std::move(view));
  return plan;
}

TEST(ByEntry, WhatLiesInAnEntryIsNoLarger) {
  const SmallCache cpu(400'000);
  const auto prepare = [&](int64_t rows) {
    const auto context = Engine::load(plan_with_view_of_entry(cpu, rows), *cpu.backend, cpu.device)->context();
    expect_like_reference(*context, 6);
  };
  EXPECT_NO_THROW(prepare(1));
  EXPECT_THROW(prepare(2), Error);
}

struct Times final : Profiler {
  std::vector<std::string> names;
  std::vector<double> ms;
  void layer(const Step& step, double milliseconds) override {
    names.push_back(step.name);
    if (step.code >= 0) ms.push_back(milliseconds);
  }
};

TEST(ByEntry, ProfilersHearOfEachStepOnce) {
  const SmallCache cpu(400'000);
  const auto engine = Engine::load(build_on(cpu, {.profiles = {batches(6, 6, 6)}}), *cpu.backend, cpu.device);
  const auto context = engine->context();
  Times times;
  context->set_profiler(&times);
  expect_like_reference(*context, 6);
  std::vector<std::string> steps;
  for (int i = 0; i < 3; ++i)
    for (const Step& step : engine->plan().profiles[0].steps) steps.push_back(step.name);
  EXPECT_EQ(times.names, steps);
  EXPECT_THAT(times.ms, Each(Gt(0)));
}

TEST(ByEntry, WhatMixesEntriesEndsTheHead) {
  const auto one = [](std::string_view text) { return one_entry_of(parse_graph(text, find_op), Dim::symbol("N")); };
  const auto pool = one("(%x: f32[N,4,8,8]) {\n %y = GlobalAveragePool(%x)\n return %y\n}");
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool->outputs()[0]->type.shape, (Shape{1, 4, 1, 1}));
  EXPECT_FALSE(one("(%x: f32[N,64]) {\n %y = Softmax(%x) {axis=0}\n return %y\n}"));
  EXPECT_FALSE(one("(%x: f32[N,64], %s: f32[64]) {\n %y = Mul(%x, %s)\n return %y\n}"));  // one for all
  EXPECT_FALSE(one("(%x: f32[4,64]) {\n %y = Relu(%x)\n return %y\n}"));
}

}  // namespace
}  // namespace hone
