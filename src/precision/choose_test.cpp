// SPDX-License-Identifier: Apache-2.0
//
// A small network through all of it on the processor. Which type wins is the machine's affair.
#include "precision/choose.h"

#include <gtest/gtest.h>

#include <map>

#include "backends/all.h"
#include "ops/all.h"

namespace hone {
namespace {

constexpr std::string_view kNet = R"((%x: f32[1,16,12,12]) {
  %w1 = constant f32[32,16,3,3]!1
  %w2 = constant f32[32,32,3,3]!2
  %c1 = Conv(%x, %w1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]} "conv1" ["conv1"]
  %r1 = Relu(%c1) "relu1" ["relu1"]
  %y = Conv(%r1, %w2) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]} "conv2" ["conv2"]
  return %y
})";

class Record final : public BuildListener {
 public:
  void precision_timed(std::string_view types, double ms, double error) override {
    EXPECT_GT(ms, 0);
    errors[std::string(types)] = error;
  }
  void precision_chosen(std::string_view types) override { chosen = types; }
  std::map<std::string, double> errors;
  std::string chosen;
};

struct Chosen {
  Record record;
  NamedTensors outputs;
};

BuildOptions every_type() {
  BuildOptions options{.best = true, .optimization_level = 1};
  options.fp16 = options.bf16 = options.int8 = true;
  for (const char* tensor : {"x", "c1", "r1", "y"}) options.scales[tensor] = {.scale = 0.05f, .zero = 0};
  return options;
}

void choose(const BuildOptions& options, Chosen& result) {
  const Backend& cpu = *find_backend("cpu");
  const std::shared_ptr<Device> device = cpu.open(0);
  TimingCache cache;
  Plan plan = choose_precision(parse_graph(kNet, find_op), options, cpu, device, cache, {&result.record}, {});
  result.outputs = RunningPlan(std::move(plan), cpu, device, {}, nullptr).outputs();
}

TEST(ChoosePrecision, OneOfTheEnginesThatRanIsThePlan) {
  Chosen chosen;
  choose(every_type(), chosen);
  EXPECT_EQ(chosen.record.errors.at("FP32"), 0);
  EXPECT_TRUE(chosen.record.errors.contains("BF16"));
  ASSERT_TRUE(chosen.record.errors.contains(chosen.record.chosen)) << chosen.record.chosen;
  EXPECT_LT(chosen.record.errors.at(chosen.record.chosen), 0.2);
}

TEST(ChoosePrecision, ABudgetOfNothingLeavesWhatIsExact) {
  BuildOptions options = every_type();
  options.accuracy_budget = 0;
  Chosen chosen;
  choose(options, chosen);
  EXPECT_EQ(chosen.record.errors.at(chosen.record.chosen), 0);
}

TEST(ChoosePrecision, NothingIsRunWhereNothingMayBeTimed) {
  BuildOptions options = every_type();
  options.optimization_level = 0;
  Chosen chosen;
  choose(options, chosen);
  EXPECT_TRUE(chosen.record.errors.empty());
  EXPECT_TRUE(chosen.outputs.contains("y"));
}

}  // namespace
}  // namespace hone
