// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/all.h"
#include "ops/ops.h"
#include "passes/passes.h"

namespace hone {
namespace {

constexpr std::string_view kNet = R"((%x: f32[2,8], %i: i64[3]) {
  %w = constant f32[8,8]!0123456789abcdef0123456789abcdef
  %m = constant f32[2,8]!1123456789abcdef0123456789abcdef
  %a = Linear(%x, %w) "first"
  %b = Relu(%a)
  %e = Exp(%b)
  %c = Add(%e, %m)
  %d = Linear(%c, %w)
  %s = Softmax(%d) {axis=1}
  return %s, %b
})";

Graph narrowed(DType dtype) {
  Graph graph = parse_graph(kNet, find_op);
  passes::select_precision(graph, {.log = silent_logger(), .precision = dtype});
  graph.erase_dead();
  graph.verify();
  return graph;
}

std::vector<DType> types_of(const Graph& graph, const OpDef& op) {
  std::vector<DType> types;
  for (const Node* node : graph.nodes())
    if (node->is(op)) types.push_back(node->output()->type.dtype);
  return types;
}

TEST(SelectPrecision, LeavesAGraphAloneUnlessAsked) {
  EXPECT_EQ(print(narrowed(DType::f32)), print(parse_graph(kNet, find_op)));
}

TEST(SelectPrecision, NarrowsMatmulsAndWhatFollowsAndKeepsExponentialsWide) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Graph graph = narrowed(dtype);
    EXPECT_EQ(types_of(graph, ops::linear), (std::vector{dtype, dtype}));
    EXPECT_EQ(types_of(graph, ops::relu), std::vector{dtype});
    EXPECT_EQ(types_of(graph, ops::softmax), std::vector{dtype});
    EXPECT_EQ(types_of(graph, ops::exp), std::vector{DType::f32});
    EXPECT_EQ(types_of(graph, ops::add), std::vector{DType::f32});
  }
}

TEST(SelectPrecision, LeavesWhatTheModelItselfHasInHalf) {
  constexpr std::string_view kHalf = R"((%x: f16[2,8]) {
  %w = constant f16[8,8]!0123456789abcdef0123456789abcdef
  %p = constant f16[] {3}
  %a = Linear(%x, %w)
  %b = Pow(%a, %p)
  %c = Mul(%b, %p)
  return %c
})";
  Graph graph = parse_graph(kHalf, find_op);
  passes::select_precision(graph, {.log = silent_logger(), .precision = DType::f16});
  graph.erase_dead();
  EXPECT_EQ(print(graph), print(parse_graph(kHalf, find_op)));
}

TEST(SelectPrecision, KeepsTheInterface) {
  const Graph graph = narrowed(DType::f16), before = parse_graph(kNet, find_op);
  ASSERT_EQ(graph.outputs().size(), before.outputs().size());
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    EXPECT_EQ(graph.outputs()[i]->name, before.outputs()[i]->name);
    EXPECT_EQ(graph.outputs()[i]->type, before.outputs()[i]->type);
  }
}

TEST(SelectPrecision, ChangesTheMeaningByRoundingAlone) {
  const Graph before = parse_graph(kNet, find_op), after = narrowed(DType::f16);
  const std::vector<Tensor> inputs = random_inputs(before, 1);
  const std::vector<Tensor> expected = evaluate(before, inputs), found = evaluate(after, inputs);
  for (size_t i = 0; i < expected.size(); ++i)
    for (int64_t k = 0; k < expected[i].size(); ++k) EXPECT_NEAR(found[i].real(k), expected[i].real(k), 2e-2);
}

TEST(SelectPrecision, LeavesNodesInF32ThatAreToStayThere) {
  Graph graph = parse_graph(kNet, find_op);
  passes::select_precision(graph, {.log = silent_logger(), .precision = DType::f16, .keeps_f32 = [](const Node& node) {
                                     return node.is(ops::linear);
                                   }});
  EXPECT_EQ(types_of(graph, ops::linear), (std::vector{DType::f32, DType::f32}));
}

Graph narrowed_around_convolutions(std::string_view text) {
  Graph graph = parse_graph(text, find_op);
  passes::select_precision(graph, {.log = silent_logger(), .precision = DType::bf16, .only_convolutions = true});
  graph.erase_dead();
  graph.verify();
  return graph;
}

constexpr const char* kPointConv =
    "{kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1], dilations=[1, 1], group=1}";
constexpr const char* kDepthwise =
    "{kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1], dilations=[1, 1], group=4}";

TEST(SelectPrecision, StaysAroundConvolutionsWhereOnlyTheyAreFast) {
  const Graph graph = narrowed_around_convolutions(fmt::format(R"((%x: f32[2,4,3,3], %r: f32[2,4,3,3]) {{
  %w = constant f32[4,4,1,1]!0123456789abcdef0123456789abcdef
  %d = constant f32[4,1,1,1]!1123456789abcdef0123456789abcdef
  %l = constant f32[3,3]!2123456789abcdef0123456789abcdef
  %a = Conv(%x, %w) {0}
  %b = Relu(%a)
  %c = Conv(%b, %d) {1}
  %e = Concat(%b, %c) {{axis=1}}
  %f = Add(%c, %r)
  %g = Linear(%c, %l)
  %h = Neg(%g)
  %i = Conv(%r, %d) {1}
  return %e, %f, %h, %i
}})",
                                                               kPointConv, kDepthwise));
  // The depthwise one follows where its input is narrow, and does not begin it.
  EXPECT_EQ(types_of(graph, ops::conv), (std::vector{DType::bf16, DType::bf16, DType::f32}));
  EXPECT_EQ(types_of(graph, ops::relu), std::vector{DType::bf16});
  EXPECT_EQ(types_of(graph, ops::concat), std::vector{DType::bf16});
  EXPECT_EQ(types_of(graph, ops::add), std::vector{DType::f32}) << "something wide joins in";
  EXPECT_EQ(types_of(graph, ops::linear), std::vector{DType::f32});
  EXPECT_EQ(types_of(graph, ops::neg), std::vector{DType::f32});
}

TEST(SelectPrecision, LeavesConvolutionsWhoseWeightsAreGivenAtTheRun) {
  const Graph graph = narrowed_around_convolutions(fmt::format(R"((%x: f32[2,4,3,3], %w: f32[4,4,1,1]) {{
  %y = Conv(%x, %w) {}
  return %y
}})",
                                                               kPointConv));
  EXPECT_EQ(types_of(graph, ops::conv), std::vector{DType::f32});
}

TEST(SelectPrecision, RoundsAConstantBeforeItIsRepeatedForMatmuls) {
  Graph graph = parse_graph(R"((%x: f32[N,4], %r: f32[N,4]) {
  %w = constant f32[1,4,4]!0123456789abcdef0123456789abcdef
  %n = constant i64[3]{3, 1, 1}
  %t = Tile(%w, %n)
  %a = MatMul(%x, %t)
  %u = Expand(%w, %n)
  %e = Exp(%u)
  return %a, %e
})",
                            find_op);
  passes::select_precision(graph, {.log = silent_logger(), .precision = DType::f16});
  EXPECT_EQ(types_of(graph, ops::tile), std::vector{DType::f16});
  EXPECT_EQ(types_of(graph, ops::expand), std::vector{DType::f32});
}

TEST(SelectPrecision, PutsTheLargestNumberForWhatF16CannotHold) {
  Graph graph = parse_graph(R"((%x: f32[2,4]) {
  %w = constant f32[4,4]!0123456789abcdef0123456789abcdef
  %a = Linear(%x, %w)
  %y = Add(%a, -3.4e+38)
  return %y
})",
                            find_op);
  passes::select_precision(graph, {.log = silent_logger(), .precision = DType::f16});
  const std::vector<Tensor> result = evaluate(graph, random_inputs(graph, 1));
  for (int64_t k = 0; k < result[0].size(); ++k) EXPECT_NEAR(result[0].real(k), -65504, 40);
}

}  // namespace
}  // namespace hone
