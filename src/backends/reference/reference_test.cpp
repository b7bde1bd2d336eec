// SPDX-License-Identifier: Apache-2.0

#include "backends/reference/reference.h"

#include <gtest/gtest.h>

#include "ops/all.h"

namespace hone {
namespace {

constexpr std::string_view kRegion = R"((%x: f32[N,3], %y: f32[3]) {
  %s = Add(%x, %y)
  %t = Relu(%s)
  return %t
})";

TEST(Reference, OffersExactlyOneTacticForAnyRegion) {
  Problem problem;
  problem.symbolic = parse_graph(kRegion, find_op);
  problem.region = problem.symbolic.specialize({{"N", 2}});
  Candidates candidates;
  reference::source().propose(problem, candidates);
  ASSERT_EQ(candidates.offers().size(), 1u);
  EXPECT_EQ(candidates.offers()[0].text(), "reference.evaluate linear -> linear");
  EXPECT_TRUE(candidates.refusals().empty());
}

TEST(Reference, RunsARegionAtASizeItWasNotCompiledFor) {
  Problem problem;
  problem.symbolic = parse_graph(kRegion, find_op);
  problem.region = problem.symbolic.specialize({{"N", 7}});
  const Compiled compiled = reference::source().compile(problem, {});
  KernelShapes shapes;
  shapes.inputs = {{DType::f32, {2, 3}}, {DType::f32, {3}}};
  shapes.outputs = {{DType::f32, {2, 3}}};
  shapes.symbols = {{"N", 2}};
  const reference::Program program(compiled.code, shapes);
  const float x[6] = {1, -2, 3, -4, 5, -6}, y[3] = {1, 1, -10};
  float result[6] = {};
  const void* inputs[] = {x, y};
  void* outputs[] = {result};
  program.run({inputs, outputs, {}, nullptr});
  const float expected[6] = {2, 0, 0, 0, 6, 0};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(result[i], expected[i]) << i;
}

}  // namespace
}  // namespace hone
