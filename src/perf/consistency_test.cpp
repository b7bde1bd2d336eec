// SPDX-License-Identifier: Apache-2.0
//
// Contexts on a device that works as late as it may, and engines that are right only sometimes.
#include "perf/consistency.h"

#include <gtest/gtest.h>

#include <atomic>

#include "device/device_testing.h"
#include "plan/plan.h"

namespace hone {
namespace {

using Run = std::function<void(const Bindings&, int64_t count)>;

void add_one(const Bindings& bindings, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    static_cast<float*>(bindings.outputs[0])[i] = static_cast<const float*>(bindings.inputs[0])[i] + 1;
}

Run g_kernel = add_one;

std::shared_ptr<const Kernel> load_kernel(Device&, std::string_view, const Blob&, const KernelShapes& shapes) {
  const int64_t count = elements(shapes.outputs[0].dims);
  return std::make_shared<FunctionKernel>([run = g_kernel, count](const Bindings& bindings) { run(bindings, count); });
}

const Backend kTest{"test", nullptr, nullptr, load_kernel, {}, nullptr};

/// x[N] -> h -> y by the kernel twice; h is a debug tensor.
std::shared_ptr<const Engine> engine_of(Run kernel, bool late = true) {
  g_kernel = std::move(kernel);
  const TensorType type{DType::f32, {Dim::symbol("N")}};
  Plan plan;
  plan.meta.backend = "test";
  plan.io = {{"x", type, true}, {"y", type, false}};
  plan.blobs = {Blob::copy("code")};
  Profile profile;
  profile.ranges = {{"x", {1}, {4}, {1024}}};
  profile.buffers = {{"x", type, BufferKind::input}, {"h", type, BufferKind::arena}, {"y", type, BufferKind::output}};
  profile.buffers[1].debug = true;
  for (const int32_t at : {0, 1}) {
    Step step{.name = fmt::format("step{}", at), .kind = "PointWise", .source = "test", .tactic = "t"};
    step.inputs = {at};
    step.outputs = {at + 1};
    step.code = 0;
    profile.steps.push_back(std::move(step));
  }
  plan.profiles = {profile};
  return Engine::load(std::move(plan), kTest, std::make_shared<TestDevice>(late));
}

NetworkInputs inputs_of(Device& device, int64_t count) {
  NetworkInputs inputs{.shapes = {{"x", {count}}}, .sets = {}};
  for (int set = 0; set < 2; ++set) {
    Buffer values(device, static_cast<size_t>(count) * sizeof(float), MemoryKind::host);
    for (int64_t i = 0; i < count; ++i) static_cast<float*>(values.data())[i] = static_cast<float>(10 * set + i);
    inputs.sets.emplace_back()["x"] = std::move(values);
  }
  return inputs;
}

Consistency checked(Run kernel, bool late = true) {
  const std::shared_ptr<const Engine> engine = engine_of(std::move(kernel), late);
  std::vector<NetworkInputs> inputs;
  for (const int64_t count : {4, 1, 1024}) inputs.push_back(inputs_of(engine->device(), count));
  return check_consistency(engine, 0, inputs, 20);
}

const Situation& situation(const Consistency& result, std::string_view name) {
  const auto found = std::ranges::find(result.situations, name, &Situation::name);
  EXPECT_NE(found, result.situations.end()) << name;
  return *found;
}

TEST(Consistency, OfAnEngineThatIsRightIsGood) {
  for (const bool late : {false, true}) {
    const Consistency result = checked(add_one, late);
    for (const Situation& each : result.situations) {
      EXPECT_GT(each.inferences, 0) << each.name;
      EXPECT_EQ(each.different, 0) << each.name;
    }
    EXPECT_EQ(result.first[0].at("y").data<float>()[3], 5);
    EXPECT_EQ(result.first[1].at("y").data<float>()[3], 15);
  }
}

TEST(Consistency, NamesTheWayInWhichAnEngineIsWrong) {
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const Consistency once = checked([calls](const Bindings& bindings, int64_t count) {
    add_one(bindings, count);
    if (++*calls > 12) *static_cast<float*>(bindings.outputs[0]) += 0.5F;
  });
  EXPECT_FALSE(once.good());
  EXPECT_GT(situation(once, "again and again").different, 0);
  EXPECT_EQ(situation(once, "again and again").tensor, "y");
  const Consistency relies = checked([](const Bindings& bindings, int64_t count) {
    auto* out = static_cast<float*>(bindings.outputs[0]);
    const bool fresh = std::isnan(out[0]);
    add_one(bindings, count);
    if (fresh) out[0] = 0;
  });
  EXPECT_GT(situation(relies, "on memory that holds NaNs").different, 0);
}

/// A context at a size, with memory of the device bound.
struct Bound {
  explicit Bound(std::shared_ptr<const Engine> loaded)
      : engine(std::move(loaded)), device(engine->device()), context(engine->context()) {}
  void run(int64_t count, float value, Stream& stream) {
    const auto bytes = static_cast<size_t>(count) * sizeof(float);
    memory.emplace_back(device, bytes);
    Buffer& x = memory.back();
    std::fill_n(static_cast<float*>(x.data()), count, value);
    memory.emplace_back(device, bytes);
    std::memset(memory.back().data(), 0, bytes);
    context->set_shape("x", {count});
    context->bind("x", x.data());
    context->bind("y", memory.back().data());
    context->enqueue(stream);
  }
  std::shared_ptr<const Engine> engine;  // keeps the device that takes the memory back
  Device& device;
  std::unique_ptr<ExecutionContext> context;
  std::deque<Buffer> memory;
};

TEST(ExecutionContext, HandsOutWhatTheLastInferenceWroteHoweverSoonItIsAsked) {
  Bound bound(engine_of(add_one));
  const std::unique_ptr<Stream> stream = bound.device.stream();
  for (const float value : {1.0F, 5.0F}) {
    bound.run(4, value, *stream);
    EXPECT_EQ(bound.context->value("y").data<float>()[3], value + 2);
    bound.run(4, value + 1, *stream);
    EXPECT_EQ(bound.context->debug_value("h").data<float>()[0], value + 2);
  }
}

TEST(ExecutionContext, KeepsItsMemoryUntilTheInferencesInFlightHaveEnded) {
  auto bound = std::make_unique<Bound>(engine_of(add_one));
  const std::unique_ptr<Stream> stream = bound->device.stream();
  bound->run(1, 1, *stream);
  const auto* first = static_cast<const float*>(bound->memory.back().data());
  bound->run(1024, 2, *stream);  // its activations need a larger arena
  EXPECT_EQ(*first, 3);
  const auto* second = static_cast<const float*>(bound->memory.back().data());
  bound->context = nullptr;
  EXPECT_EQ(second[1023], 4);
}

TEST(ExecutionContext, FillsItsMemoryWithNansBeforeEachInferenceWhereThatIsAskedFor) {
  bool held_nans = false;
  Bound bound(engine_of([&held_nans](const Bindings& bindings, int64_t count) {
    held_nans = std::isnan(*static_cast<const float*>(bindings.outputs[0]));
    add_one(bindings, count);
  }));
  const std::unique_ptr<Stream> stream = bound.device.stream();
  for (const bool poison : {true, false, true}) {
    bound.context->set_poison(poison);
    bound.run(4, 1, *stream);
    bound.context->wait();
    bound.run(4, 1, *stream);
    bound.context->wait();
    EXPECT_EQ(held_nans, poison);
  }
}

}  // namespace
}  // namespace hone
