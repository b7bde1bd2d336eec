// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/all.h"
#include "ops/ops.h"
#include "passes/passes.h"

namespace hone {
namespace {

constexpr std::string_view kNet = R"((%x: f32[2,8]) {
  %w = constant f32[8,8]!0123456789abcdef0123456789abcdef
  %a = Linear(%x, %w) "first"
  %b = Relu(%a) "relu"
  %c = Linear(%b, %w) "second"
  %d = Exp(%c) "exp"
  return %d, %b
})";

using Asked = std::map<std::string, AskedTypes>;

Graph constrained(const Asked& asked) {
  Graph graph = parse_graph(kNet, find_op);
  for (Node* node : graph.nodes()) node->origin = {node->name};
  PassContext context{.log = silent_logger()};
  context.asked = [&](const Node& node) {
    const auto found = asked.find(node.name);
    return found == asked.end() ? AskedTypes() : found->second;
  };
  passes::constrain_types(graph, context);
  graph.verify();
  return graph;
}

/// Names of the layers whose results are brought to the type, in order; constants are "w".
std::vector<std::string> rounded_to(const Graph& graph, DType type) {
  std::vector<std::string> names;
  for (const Node* node : graph.nodes())
    if (node->is(ops::cast) && node->output()->type.dtype == type) {
      const Node* producer = node->input(0)->producer;
      names.push_back(producer != nullptr ? producer->name : node->input(0)->is_constant() ? "w" : "x");
    }
  return names;
}

using Names = std::vector<std::string>;

TEST(ConstrainTypes, LeavesAGraphAloneUnlessAsked) {
  EXPECT_EQ(rounded_to(constrained({}), DType::f16), Names{});
  EXPECT_EQ(rounded_to(constrained({{"first", {.computes = DType::f32}}}), DType::f16), Names{});
}

TEST(ConstrainTypes, RoundsOperandsAndResultsOfALayer) {
  EXPECT_EQ(rounded_to(constrained({{"second", {.computes = DType::f16}}}), DType::f16),
            (Names{"relu", "w", "second"}));
  EXPECT_EQ(rounded_to(constrained({{"second", {.computes = DType::bf16}}}), DType::bf16),
            (Names{"relu", "w", "second"}));
}

TEST(ConstrainTypes, RoundsResultsAloneWhereOnlyTheyAreAsked) {
  EXPECT_EQ(rounded_to(constrained({{"second", {.results = {DType::f16}}}}), DType::f16), Names{"second"});
  EXPECT_EQ(rounded_to(constrained({{"second", {.computes = DType::f16, .results = {DType::f32}}}}), DType::f16),
            (Names{"relu", "w"}));
}

TEST(ConstrainTypes, RoundsNothingInsideOneKernelAndNothingTwice) {
  const AskedTypes half{.computes = DType::f16};
  // The activation joins the matmul; the second reads what is rounded already.
  EXPECT_EQ(rounded_to(constrained({{"first", half}, {"relu", half}, {"second", half}}), DType::f16),
            (Names{"x", "w", "relu", "second"}));
}

TEST(ConstrainTypes, KeepsTheInterface) {
  const Graph graph = constrained({{"exp", {.results = {DType::f16}}}, {"relu", {.results = {DType::bf16}}}});
  ASSERT_EQ(graph.outputs().size(), 2u);
  for (const Value* output : graph.outputs()) EXPECT_EQ(output->type.dtype, DType::f32);
  EXPECT_EQ(graph.outputs()[0]->name, "d");
  EXPECT_EQ(graph.outputs()[1]->name, "b");
}

TEST(ConstrainTypes, GivesWhatRoundingGives) {
  const Graph before = parse_graph(kNet, find_op), after = constrained({{"relu", {.results = {DType::bf16}}}});
  const std::vector<Tensor> inputs = random_inputs(before, 7);
  const std::vector<Tensor> wide = evaluate(before, inputs), narrow = evaluate(after, inputs);
  for (int64_t i = 0; i < wide[1].size(); ++i)
    EXPECT_EQ(narrow[1].real(i), bfloat_to_float(float_to_bfloat(static_cast<float>(wide[1].real(i)))));
}

}  // namespace
}  // namespace hone
