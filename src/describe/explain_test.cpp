// SPDX-License-Identifier: Apache-2.0
//
// Kernels that are right once, or on memory that suits them, against the tuner: each is rejected and named by --explain.
#include <gtest/gtest.h>

#include <atomic>

#include "builder/build.h"
#include "describe/explain.h"
#include "device/code.h"
#include "device/device_testing.h"
#include "device/tactic.h"
#include "ops/all.h"

namespace hone {
namespace {

constexpr int64_t kCount = 64;
constexpr std::string_view kNet = "(%x: f32[64]) {\n %y = Mul(%x, %x) \"square\" [\"square\"]\n return %y\n}";

/// Squares its input: rightly, or in a way that one inference on fresh memory does not show.
std::shared_ptr<const Kernel> load_square(Device&, std::string_view, const Blob& code, const KernelShapes&) {
  const std::string how = decode_code(code).family;
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const auto kept = std::make_shared<std::vector<float>>(kCount);
  return std::make_shared<FunctionKernel>(
      [=](const Bindings& bindings) {
        const auto* x = static_cast<const float*>(bindings.inputs[0]);
        auto *y = static_cast<float*>(bindings.outputs[0]), *sums = static_cast<float*>(bindings.workspace);
        const int call = (*calls)++;
        for (size_t i = 0; i < kCount; ++i) {
          const float right = x[i] * x[i];
          if (call == 0) (*kept)[i] = right;
          if (how == "right_once") y[i] = call == 0 ? right : 0;
          else if (how == "right_at_first") y[i] = call < 20 ? right : 0;
          else if (how == "stale") y[i] = (*kept)[i];
          else if (how == "reads_its_output") y[i] = y[i] * 0 + right;
          else if (how == "wants_zeros") y[i] = sums[i] = sums[i] + right;
          else if (how == "writes_half") y[i] = i < kCount / 2 ? right : y[i];
          else y[i] = right;
        }
      },
      kCount * sizeof(float));
}

constexpr std::string_view kWrong[] = {"right_once",       "right_at_first", "stale",
                                       "reads_its_output", "wants_zeros",    "writes_half"};

class SquareSource final : public TacticSource {
 public:
  explicit SquareSource(std::string_view name) : name_(name) {}
  std::string_view name() const override { return name_; }
  void propose(const Problem&, Candidates& out) const override {
    const auto offer = [&](std::string_view tactic) {
      out.offer({std::string(name_), std::string(tactic), {}, {Layout::linear}, {Layout::linear}});
    };
    if (name_ == "test")
      for (const std::string_view tactic : kWrong) offer(tactic);
    offer("right");
  }
  Compiled compile(const Problem&, const Tactic& tactic) const override { return {encode_code(tactic.name, {}), {}}; }

 private:
  std::string_view name_;
};

std::string explained(bool late, const BuildOptions& options = {}) {
  static const SquareSource test("test"), reference("reference");
  static const TacticSource* const kSources[] = {&test, &reference};
  const Backend backend{"test", nullptr, nullptr, load_square, kSources, [] { return std::string("1"); }};
  TestDevice device(late);
  TimingCache cache;
  const Plan plan = build(parse_graph(kNet, find_op), options, backend, device, cache);
  std::string text;
  for (const std::string& line : explain_lines(plan, "square")) text += line + "\n";
  return text;
}

TEST(Explain, NamesKernelsThatAreNotRightAsUsersRunThem) {
  for (const bool late : {false, true}) {
    const std::string text = explained(late);
    EXPECT_NE(text.find("chosen: test.right"), std::string::npos) << text;
    for (const std::string_view tactic : kWrong) {
      const size_t at = text.find(fmt::format("test.{} ", tactic));
      ASSERT_NE(at, std::string::npos) << text;
      EXPECT_NE(text.substr(at, text.find('\n', at) - at).find("rejected: "), std::string::npos) << text;
    }
    EXPECT_NE(text.find("the second inference, on other values, differs"), std::string::npos) << text;
    EXPECT_NE(text.find("an inference after many others differs"), std::string::npos) << text;
  }
}

TEST(Explain, SaysWhichTimesAreEstimates) {
  EXPECT_EQ(explained(false).find("estimated"), std::string::npos);
  const std::string text = explained(false, {.optimization_level = 0});
  EXPECT_NE(text.find("estimated 2.0 us"), std::string::npos) << text;
  EXPECT_EQ(text.find(" ms"), std::string::npos) << "as if it had been timed: " << text;
}

}  // namespace
}  // namespace hone
