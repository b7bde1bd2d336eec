// SPDX-License-Identifier: Apache-2.0

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

TEST(SelectPrecision, NarrowsProductsAndWhatFollowsAndKeepsExponentialsWide) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Graph graph = narrowed(dtype);
    EXPECT_EQ(types_of(graph, ops::linear), (std::vector{dtype, dtype}));
    EXPECT_EQ(types_of(graph, ops::relu), std::vector{dtype});
    EXPECT_EQ(types_of(graph, ops::softmax), std::vector{dtype});
    EXPECT_EQ(types_of(graph, ops::exp), std::vector{DType::f32});
    EXPECT_EQ(types_of(graph, ops::add), std::vector{DType::f32});
  }
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

TEST(SelectPrecision, RoundsAConstantBeforeItIsRepeatedForProducts) {
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
