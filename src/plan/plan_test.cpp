// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hone {
namespace {

Plan sample() {
  const TensorType type{DType::f32, {Dim::symbol("N"), 4}, Layout::linear};
  Plan plan;
  plan.meta = {.hone_version = "0.1.0",
               .backend = "cpu",
               .device = "test",
               .architecture = "avx2",
               .model = "m.onnx",
               .options = "{}"};
  plan.io = {{"x", type, true, ValueRange{0, 9}}, {"y", type, false}};
  plan.folded = {{"shape", "fold_shapes"}};
  Profile profile;
  profile.ranges = {{"x", {1, 4}, {2, 4}, {8, 4}}};
  profile.buffers = {{"x", type, BufferKind::input, -1}, {"y", type, BufferKind::output, -1}};
  profile.steps = {{.name = "a + \"b\"",
                    .origin = {"a", "b"},
                    .kind = "Linear",
                    .source = "cpu",
                    .tactic = "linear",
                    .tactic_params = {{"mr", int64_t{14}}},
                    .details = {{"max", INFINITY}, {"list", std::vector<double>{1, 2}}},
                    .inputs = {0},
                    .outputs = {1},
                    .constants = {0},
                    .code = 0,
                    .tuned_ms = 0.1}};
  plan.profiles = {profile};
  plan.constants = {Tensor::of<float>({4}, {1, 2, 3, 4})};
  plan.blobs = {Blob::copy("code")};
  plan.log = {{"a", {{"cpu.linear", 0.1, 0.01, ""}}, "cpu.linear"}};
  return plan;
}

Blob blob_of(const std::vector<std::byte>& bytes) { return Blob::copy(bytes); }

TEST(PlanFile, LoadIsTheInverseOfSave) {
  const std::vector<std::byte> bytes = save_plan(sample());
  const Plan plan = load_plan(blob_of(bytes));
  EXPECT_EQ(save_plan(plan), bytes);
  EXPECT_EQ(plan.profiles[0].steps[0].name, "a + \"b\"");
  EXPECT_EQ(plan.constants[0].data<float>()[3], 4);
  ASSERT_TRUE(plan.io[0].range.has_value());
  EXPECT_EQ(plan.io[0].range->high, 9);
  EXPECT_FALSE(plan.io[1].range.has_value());
  EXPECT_EQ(plan.folded.at(0).pass, "fold_shapes");
}

TEST(PlanFile, EveryAlteredByteIsRefused) {
  const std::vector<std::byte> bytes = save_plan(sample());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> altered = bytes;
    altered[i] ^= std::byte{0x21};
    EXPECT_THROW(load_plan(blob_of(altered)), Error) << "byte " << i;
  }
}

TEST(PlanFile, EveryCutIsRefused) {
  const std::vector<std::byte> bytes = save_plan(sample());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(load_plan(Blob::copy(std::span(bytes).first(size))), Error) << size;
}

TEST(PlanFile, ForeignFilesAreNamed) {
  try {
    load_plan(Blob::copy("ftrt and so on, much longer than a header would have to be............"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("TensorRT"), std::string::npos);
  }
}

TEST(PlanVerify, RefusesReferencesToNothing) {
  const auto refused = [](auto&& damage) {
    Plan plan = sample();
    damage(plan.profiles[0]);
    EXPECT_THROW(verify(plan), Error);
  };
  refused([](Profile& p) { p.steps[0].inputs = {7}; });
  refused([](Profile& p) { p.steps[0].inputs = {1}; });
  refused([](Profile& p) { p.steps[0].outputs = {0}; });
  refused([](Profile& p) { p.steps[0].constants = {1}; });
  refused([](Profile& p) { p.steps[0].code = 5; });
  refused([](Profile& p) { p.buffers[0].alias = 0; });
  refused([](Profile& p) { p.ranges[0].max = {1, 4}; });
  refused([](Profile& p) { p.buffers.pop_back(); });
}

}  // namespace
}  // namespace hone
