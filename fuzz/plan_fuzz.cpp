// SPDX-License-Identifier: Apache-2.0
//
// A plan's bytes, whatever they are, load or are refused with an Error: as they are, and as a manifest with right checksums,
// since damage to a whole file hardly gets past those.
#include "harness.h"
#include "plan/plan.h"
#include "plan/plan_testing.h"

namespace hone::fuzz {
namespace {

Plan sample() {
  const TensorType type{DType::f32, {Dim::symbol("N"), 4}, Layout::linear};
  Plan plan;
  plan.meta = {
      .hone_version = "0.1.0", .backend = "cpu", .device = "d", .architecture = "avx2", .model = "m", .options = ""};
  plan.io = {{"x", type, true, ValueRange{0, 9}}, {"y", type, false}};
  plan.folded = {{"shape", "fold_shapes"}};
  Profile profile;
  profile.ranges = {{"x", {1, 4}, {2, 4}, {8, 4}}};
  profile.buffers = {
      {"x", type, BufferKind::input}, {"y", type, BufferKind::output}, {"v", type, BufferKind::arena, 1}};
  Step step{.name = "a", .origin = {"a"}, .kind = "Linear", .source = "cpu", .tactic = "linear"};
  step.tactic_params = {{"mr", int64_t{14}}};
  step.inputs = {0};
  step.outputs = {1};
  profile.steps = {step};
  plan.profiles = {profile};
  plan.log = {{"a", {{"cpu.linear", 0.1, 0.01, ""}}, "cpu.linear"}};
  return plan;
}

}  // namespace

std::vector<std::string> seed_inputs() {
  Plan plan = sample();
  const std::vector<std::byte> bare = save_plan(plan);
  plan.constants = {Tensor::of<float>({4}, {1, 2, 3, 4})};
  plan.blobs = {Blob::copy("code")};
  plan.profiles[0].steps[0].constants = {0};
  plan.profiles[0].steps[0].code = 0;
  const std::vector<std::byte> whole = save_plan(plan);
  const auto text = [](const std::vector<std::byte>& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  return {text(whole), text(bare), text(bare).substr(48)};
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  fuzz::accepted([&] { load_plan(Blob::copy(std::as_bytes(std::span(data, size)))); });
  fuzz::accepted([&] { load_plan(Blob::copy(signed_plan(fuzz::text_of(data, size)))); });
  return 0;
}
