// SPDX-License-Identifier: Apache-2.0
//
// Memory at addresses that kernels of a GPU cannot work on.
#include <gtest/gtest.h>

#include "base/state_error.h"
#include "device/device_testing.h"
#include "plan/plan.h"
#include "runtime/engine.h"

namespace hone {
namespace {

/// y = x + 1, where a kernel asks for whole vectors.
std::shared_ptr<const Kernel> load_kernel(Device& device, std::string_view, const Blob&, const KernelShapes& shapes) {
  const int64_t count = elements(shapes.outputs[0].dims);
  const bool vectors = !device.host_accessible();
  return std::make_shared<FunctionKernel>([=](const Bindings& bindings) {
    if (vectors) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bindings.inputs[0]) % 16, 0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bindings.outputs[0]) % 16, 0);
    }
    for (int64_t i = 0; i < count; ++i)
      static_cast<float*>(bindings.outputs[0])[i] = static_cast<const float*>(bindings.inputs[0])[i] + 1;
  });
}

const Backend kTest{"test", nullptr, nullptr, load_kernel, {}, nullptr};

std::shared_ptr<const Engine> engine_of(bool late) {
  const TensorType type{DType::f32, {Dim::symbol("N")}};
  Plan plan;
  plan.meta.backend = "test";
  plan.io = {{"x", type, true}, {"y", type, false}};
  plan.blobs = {Blob::copy("code")};
  Profile profile;
  profile.ranges = {{"x", {1}, {4}, {1024}}};
  profile.buffers = {{"x", type, BufferKind::input}, {"y", type, BufferKind::output}};
  Step step{.name = "step", .kind = "PointWise", .source = "test", .tactic = "t"};
  step.inputs = {0};
  step.outputs = {1};
  step.code = 0;
  profile.steps = {step};
  plan.profiles = {profile};
  return Engine::load(std::move(plan), kTest, std::make_shared<TestDevice>(late));
}

class BoundMemory : public testing::TestWithParam<bool> {
 protected:
  /// Runs over `count` floats that lie `x_at` and `y_at` floats behind a boundary.
  void run(int64_t count, size_t x_at, size_t y_at, float first) {
    float *x = x_ + x_at, *y = y_ + y_at;
    for (int64_t i = 0; i < count; ++i) x[i] = first + static_cast<float>(i);
    std::fill(std::begin(y_), std::end(y_), -1.0f);
    context_->set_shape("x", {count});
    context_->bind("x", x);
    context_->bind("y", y);
    context_->enqueue(*stream_);
    stream_->synchronize();
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(y[i], first + static_cast<float>(i) + 1) << count << " floats, " << i;
    EXPECT_EQ(y[count], -1);
    EXPECT_TRUE(y_at == 0 || y[-1] == -1);
    EXPECT_EQ(context_->value("y").data<float>()[0], first + 1);
  }

  std::shared_ptr<const Engine> engine_ = engine_of(GetParam());
  std::unique_ptr<Stream> stream_ = engine_->device().stream();
  std::unique_ptr<ExecutionContext> context_ = engine_->context();
  alignas(64) float x_[1040], y_[1040];
};

TEST_P(BoundMemory, MayBeginAnywhere) {
  for (const size_t x_at : {0, 1, 4, 7})
    for (const size_t y_at : {3, 0, 8, 1}) run(4, x_at, y_at, static_cast<float>(x_at * 10 + y_at));
}

TEST_P(BoundMemory, MayBeginAnywhereInOtherShapes) {
  for (const int64_t count : {4, 1000, 4, 1024, 1}) run(count, 1, 3, static_cast<float>(count));
}

TEST_P(BoundMemory, IsReadAgainInEachInference) {
  context_->set_shape("x", {4});
  context_->bind("x", x_ + 1);
  context_->bind("y", y_ + 2);
  context_->ready();
  for (int inference = 0; inference < 5; ++inference) {
    std::fill(x_, x_ + 8, static_cast<float>(inference));
    context_->enqueue(*stream_);
    stream_->synchronize();
    EXPECT_EQ(y_[5], static_cast<float>(inference + 1));
  }
}

TEST_P(BoundMemory, OfOneTensorMayBeThatOfAnother) {
  context_->set_shape("x", {4});
  context_->bind("x", x_ + 1);
  context_->bind("y", x_ + 1);
  std::fill(x_, x_ + 8, 0.0f);
  for (int inference = 0; inference < 3; ++inference) context_->enqueue(*stream_);
  stream_->synchronize();
  EXPECT_EQ(x_[0], 0);
  EXPECT_EQ(x_[1], 3);
  EXPECT_EQ(x_[4], 3);
  EXPECT_EQ(x_[5], 0);
}

TEST_P(BoundMemory, IsAskedForWhereThereIsNone) {
  context_->set_shape("x", {4});
  context_->bind("x", x_);
  EXPECT_THROW(context_->enqueue(*stream_), StateError);
}

TEST(BoundMemoryWhileCaptured, IsThereFromARunBefore) {
  const std::shared_ptr<const Engine> engine = engine_of(true);
  const auto context = engine->context();
  TestStream stream(true);
  alignas(64) float x[8] = {0, 5, 5, 5, 5}, y[8] = {};
  context->set_shape("x", {4});
  context->bind("x", x);
  context->bind("y", y);
  context->enqueue(stream);
  context->bind("x", x + 1);
  stream.set_capturing(true);
  EXPECT_THROW(context->enqueue(stream), StateError);
  stream.set_capturing(false);
  context->enqueue(stream);
  stream.set_capturing(true);
  context->enqueue(stream);
  stream.synchronize();
  EXPECT_EQ(y[3], 6);
}

INSTANTIATE_TEST_SUITE_P(Devices, BoundMemory, testing::Bool(),
                         [](const auto& late) { return late.param ? "late" : "on_the_host"; });

}  // namespace
}  // namespace hone
