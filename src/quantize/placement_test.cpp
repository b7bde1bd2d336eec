// SPDX-License-Identifier: Apache-2.0
#include "quantize/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/all.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::string_view kConv =
    "{auto_pad=\"NOTSET\", dilations=[1, 1], group=1, kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1]}";

Graph read(std::string text) {
  for (size_t at = text.find("CONV"); at != std::string::npos; at = text.find("CONV")) text.replace(at, 4, kConv);
  return parse_graph(text, find_op);
}

/// "x -> conv.0 add.1": a tensor and who reads it quantised.
std::vector<std::string> places(const Placement& placement) {
  std::vector<std::string> lines;
  for (const PlacedTensor& tensor : placement.tensors) {
    std::string line = tensor.value->name + " ->";
    for (const Use& use : tensor.uses) line += fmt::format(" {}.{}", use.node->output()->name, use.index);
    lines.push_back(line);
  }
  return lines;
}

TEST(Placement, ProductsWithConstantWeightsReadBytes) {
  const Graph graph = read(R"((%x: f32[N,4,8,8], %y: f32[N,4,8,8]) {
  %w = constant f32[6,4,1,1]!01
  %c = Conv(%x, %w) CONV
  %f = Flatten(%c) {axis=1}
  %v = constant f32[384,5]!02
  %m = MatMul(%f, %v)
  %d = Flatten(%y) {axis=2}
  return %m, %d
})");
  const Placement placement = place_quantization(graph, {});
  EXPECT_EQ(placement.nodes, 2u);
  EXPECT_THAT(placement.left, IsEmpty());
  EXPECT_THAT(places(placement), UnorderedElementsAre("x -> c.0", "c -> f.0", "f -> m.0"));
  ASSERT_EQ(placement.weights.size(), 2u);
  EXPECT_EQ(placement.weights[0].axis, 0);
  EXPECT_EQ(placement.weights[1].axis, 1);
}

TEST(Placement, ADeviceThatTakesWholePiecesLeavesOtherProducts) {
  const Graph graph = read(R"((%x: f32[N,4,8,8], %y: f32[N,16,8,8]) {
  %w = constant f32[6,4,1,1]!01
  %c = Conv(%x, %w) CONV
  %f = Flatten(%c) {axis=1}
  %v = constant f32[384,5]!02
  %m = MatMul(%f, %v)
  %u = constant f32[16,1,1,1]!03
  %d = Conv(%y, %u) {auto_pad="NOTSET", dilations=[1, 1], group=16, kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1]}
  return %m, %d
})");
  const Placement placement = place_quantization(graph, {.piece = 16});
  EXPECT_EQ(placement.nodes, 1u);
  ASSERT_EQ(placement.left.size(), 2u);
  for (const UnquantizedNode& left : placement.left) EXPECT_THAT(left.reason, HasSubstr("16 channels at a time"));
}

TEST(Placement, WhatMovesElementsHasOneScaleOnBothSides) {
  const Graph graph = read(R"((%x: f32[N,4,8,8]) {
  %w = constant f32[4,4,1,1]!01
  %a = Conv(%x, %w) CONV
  %b = Conv(%x, %w) CONV
  %k = Concat(%a, %b) {axis=1}
  %v = constant f32[4,8,1,1]!02
  %c = Conv(%k, %v) CONV
  return %c
})");
  const Placement placement = place_quantization(graph, {});
  EXPECT_THAT(places(placement), ElementsAre("x -> a.0 b.0", "a -> k.0", "b -> k.1", "k -> c.0"));
  EXPECT_EQ(placement.tensors[1].group, placement.tensors[3].group);
  EXPECT_EQ(placement.tensors[2].group, placement.tensors[3].group);
  EXPECT_NE(placement.tensors[0].group, placement.tensors[3].group);
}

TEST(Placement, OfASumOneTensorIsReadAsBytes) {
  const Graph graph = read(R"((%x: f32[N,4,8,8]) {
  %w = constant f32[4,4,1,1]!01
  %a = Conv(%x, %w) CONV
  %r = Relu(%a)
  %b = Conv(%r, %w) CONV
  %s = Add(%b, %r)
  %c = Conv(%s, %w) CONV
  return %c
})");
  EXPECT_THAT(places(place_quantization(graph, {})), ElementsAre("x -> a.0", "r -> b.0 s.1", "s -> c.0"));
}

TEST(Placement, OfASumOfTwoConvolutionsTheEarlierIsRead) {
  const Graph graph = read(R"((%x: f32[N,4,8,8]) {
  %w = constant f32[4,4,1,1]!01
  %a = Conv(%x, %w) CONV
  %b = Conv(%x, %w) CONV
  %s = Add(%b, %a)
  %c = Conv(%s, %w) CONV
  return %c
})");
  EXPECT_THAT(places(place_quantization(graph, {})), ElementsAre("x -> a.0 b.0", "a -> s.1", "s -> c.0"));
}

TEST(Placement, AStreamInFloatsStaysSo) {
  const Graph graph = read(R"((%x: f32[N,4]) {
  %w = constant f32[4,4]!01
  %e = Exp(%x)
  %m = MatMul(%e, %w)
  %s = Add(%m, %x)
  return %s
})");
  EXPECT_THAT(places(place_quantization(graph, {})), ElementsAre("e -> m.0"));
}

TEST(Placement, WhatIsLeftHasAReason) {
  const Graph graph = read(R"((%x: f32[N,4,4], %h: f16[4,4]) {
  %w = constant f32[4,4]!01
  %p = MatMul(%x, %x)
  %k = constant f16[4,4]!02
  %q = MatMul(%h, %k)
  %m = MatMul(%p, %w)
  return %m, %q
})");
  const Placement placement = place_quantization(graph, {});
  ASSERT_EQ(placement.left.size(), 2u);
  EXPECT_THAT(placement.left[0].reason, HasSubstr("weights are computed"));
  EXPECT_THAT(placement.left[1].reason, HasSubstr("f16"));
  EXPECT_EQ(placement.nodes, 1u);
}

TEST(Placement, RulesKeepNodesAndTensorsInFloats) {
  const Graph graph = read(R"((%x: f32[N,4]) {
  %w = constant f32[4,4]!01
  %a = MatMul(%x, %w)
  %b = MatMul(%a, %w)
  return %b
})");
  const auto keeps_a = [](const Node& node) { return node.output()->name == "a"; };
  EXPECT_THAT(places(place_quantization(graph, {.keeps_floats = keeps_a, .has_scale = {}})), ElementsAre("a -> b.0"));
  const auto knows_x = [](const Value& value) { return value.name == "x"; };
  const Placement placement = place_quantization(graph, {.keeps_floats = {}, .has_scale = knows_x});
  EXPECT_THAT(places(placement), ElementsAre("x -> a.0"));
  EXPECT_THAT(placement.left.at(0).reason, HasSubstr("the scale of a is not known"));
}

TEST(Placement, WeightsThatAreReadAlongTwoAxesAreQuantisedAlongOne) {
  const Graph graph = read(R"((%x: f32[N,4]) {
  %w = constant f32[4,4]!01
  %a = MatMul(%x, %w)
  %b = Gemm(%x, %w) {alpha=1, beta=1, transA=0, transB=1}
  return %a, %b
})");
  const Placement placement = place_quantization(graph, {});
  EXPECT_EQ(placement.nodes, 1u);
  EXPECT_THAT(placement.left.at(0).reason, HasSubstr("another axis"));
}

}  // namespace
}  // namespace hone
