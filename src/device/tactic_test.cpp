// SPDX-License-Identifier: Apache-2.0

#include "device/tactic.h"

#include <gtest/gtest.h>

#include "ops/all.h"

namespace hone {
namespace {

Problem problem_of(std::string_view text) {
  Problem problem;
  problem.region = parse_graph(text, find_op);
  return problem;
}

TEST(Tactic, PrintsWhatTellsItFromOthers) {
  const Tactic tactic{
      "cpu", "conv", {{"pixels", int64_t{14}}}, {Layout::linear, Layout::channels_last}, {Layout::channels_last}};
  EXPECT_EQ(tactic.text(), "cpu.conv(pixels=14) linear,channels_last -> channels_last");
  const Tactic bare{"reference", "evaluate", {}, {}, {Layout::linear, Layout::linear}};
  EXPECT_EQ(bare.text(), "reference.evaluate - -> linear");
}

TEST(Problem, KeyDoesNotDependOnNamesButOnAllowedPrecision) {
  Problem a = problem_of("(%x: f32[2]) {\n %y = Relu(%x)\n return %y\n}");
  const Problem b = problem_of("(%other: f32[2]) {\n %name = Relu(%other)\n return %name\n}");
  const Problem c = problem_of("(%x: f32[3]) {\n %y = Relu(%x)\n return %y\n}");
  EXPECT_EQ(a.key(), b.key());
  EXPECT_NE(a.key(), c.key());
  a.allowed.bf16 = true;
  EXPECT_NE(a.key(), b.key());
}

TEST(Problem, KnowsWhetherItHasASingleNode) {
  EXPECT_NE(problem_of("(%x: f32[2]) {\n %y = Relu(%x)\n return %y\n}").only(), nullptr);
  EXPECT_EQ(problem_of("(%x: f32[2]) {\n %y = Relu(%x)\n %z = Relu(%y)\n return %z\n}").only(), nullptr);
}

}  // namespace
}  // namespace hone
