// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite.h"

#include <gtest/gtest.h>

#include "ops/all.h"
#include "passes/pipeline.h"

namespace hone {
namespace {

Graph parse(std::string_view text) { return parse_graph(text, find_op); }

size_t count(Graph& graph, const Rewrite& rewrite) {
  const PassContext context{.log = silent_logger()};
  const size_t times = apply(graph, std::span(&rewrite, 1), context);
  graph.erase_dead();
  graph.verify();
  return times;
}

void check_all(std::span<const Pass> passes) {
  for (const Pass& pass : passes) {
    check_all(pass.group);
    if (pass.rewrites == nullptr) continue;
    for (const Rewrite& rewrite : pass.rewrites())
      EXPECT_NO_THROW(check_rewrite(rewrite)) << pass.name << "/" << rewrite.name;
  }
}

const Rewrite kSwish{.name = "swish", .match = "%s = Sigmoid(%x)\n%y = Mul(%x, %s)", .replace = "%y = Silu(%x)"};

TEST(Rewrite, EveryRewriteOfThePipelineParses) { check_all(pipeline()); }

TEST(Rewrite, CommutativeOperandsMatchInEitherOrder) {
  Graph left = parse("(%x: f32[4]) { %s = Sigmoid(%x) %y = Mul(%x, %s) }");
  Graph right = parse("(%x: f32[4]) { %s = Sigmoid(%x) %y = Mul(%s, %x) }");
  EXPECT_EQ(count(left, kSwish), 1u);
  EXPECT_EQ(count(right, kSwish), 1u);
  EXPECT_EQ(right.node_count(), 1u);
}

TEST(Rewrite, OperandsOfOtherOperatorsKeepTheirOrder) {
  const Rewrite rewrite{.name = "difference", .match = "%n = Neg(%z)\n%y = Sub(%x, %n)", .replace = "%y = Add(%x, %z)"};
  Graph graph = parse("(%x: f32[4], %z: f32[4]) { %n = Neg(%z) %y = Sub(%n, %x) }");
  EXPECT_EQ(count(graph, rewrite), 0u);
}

TEST(Rewrite, AnInnerValueWithAnotherUserDoesNotMatch) {
  Graph used = parse("(%x: f32[4]) { %s = Sigmoid(%x) %y = Mul(%x, %s) %z = Add(%y, %s) }");
  EXPECT_EQ(count(used, kSwish), 0u);
  Graph output = parse("(%x: f32[4]) { %s = Sigmoid(%x) %y = Mul(%x, %s) return %y, %s }");
  EXPECT_EQ(count(output, kSwish), 0u);
}

TEST(Rewrite, NumbersMatchSplatConstantsWithinTolerance) {
  const Rewrite rewrite{.name = "third", .match = "%y = Mul(%x, 0.33333333)", .replace = "%y = Neg(%x)"};
  Graph near = parse("(%x: f32[4]) { %y = Mul(%x, 0.33334) }");
  Graph far = parse("(%x: f32[4]) { %y = Mul(%x, 0.34) }");
  Graph splat = parse("(%x: f32[2]) { %c = constant f32[2]{0.33333334, 0.33333334} %y = Mul(%x, %c) }");
  EXPECT_EQ(count(near, rewrite), 1u);
  EXPECT_EQ(count(far, rewrite), 0u);
  EXPECT_EQ(count(splat, rewrite), 1u);
}

TEST(Rewrite, NamesJoinAndOriginsMerge) {
  Graph graph = parse(R"((%x: f32[4]) { %s = Sigmoid(%x) "sig" ["a"] %y = Mul(%x, %s) "mul" ["b"] })");
  ASSERT_EQ(count(graph, kSwish), 1u);
  const Node* node = graph.nodes().front();
  EXPECT_EQ(node->name, "sig + mul");
  EXPECT_EQ(node->origin, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(graph.outputs().front()->name, "y");
}

TEST(Rewrite, ATypoIsAnError) {
  EXPECT_THROW(check_rewrite({.name = "t", .match = "%y = Sigmoidd(%x)", .replace = "%y = Relu(%x)"}), InternalError);
  EXPECT_THROW(check_rewrite({.name = "t", .match = "%y = Sigmoid(%x)", .replace = "%y = Relu(%z)"}), InternalError);
  EXPECT_THROW(check_rewrite({.name = "t", .match = "%a = Relu(%x)\n%y = Sigmoid(%x)", .replace = "%y = Relu(%x)"}),
               InternalError);
  EXPECT_THROW(check_rewrite({.name = "t", .match = "%y = Softmax(%x) {axes=1}", .replace = "%y = Relu(%x)"}),
               InternalError);
}

}  // namespace
}  // namespace hone
