// SPDX-License-Identifier: Apache-2.0
//
// What families keep of a region in their code: read from graphs, written and read within bounds, held against a plan's step.
#include <gmock/gmock.h>

#include "ops/all.h"
#include "regions/attention_region.h"
#include "regions/conv_region.h"
#include "regions/matmul_region.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Graph graph_of(std::string_view text) { return parse_graph(text, find_op); }

template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

constexpr std::string_view kConv =
    "(%r: f32[2,12,5,4], %x: f32[2,8,9,8]) {\n %w = constant f32[12,4,3,2]!01\n %b = constant f32[12]!02\n %c = "
    "Conv(%x, %w, %b) {kernel_shape=[3, 2], strides=[2, 2], dilations=[1, 1], pads=[0, 0, 0, 0], group=2, "
    "auto_pad=\"SAME_LOWER\"}\n %a = Clamp(%c) {min=-1.0, max=6.0}\n %y = Add(%a, %r)\n return %y\n}";

ConcreteType f32(Dims dims) { return {DType::f32, std::move(dims), Layout::linear}; }

KernelShapes conv_shapes() {
  KernelShapes shapes;
  shapes.inputs = {f32({2, 12, 5, 4}), f32({2, 8, 9, 8})};
  shapes.outputs = {f32({2, 12, 5, 4})};
  return shapes;
}

TEST(ConvRegion, HoldsWindowGroupsAndEpilogue) {
  const Graph graph = graph_of(kConv);
  const std::optional<ConvRegion> region = read_conv_region(graph);
  ASSERT_TRUE(region && region->match);
  EXPECT_FALSE(region->transposed);
  const ConvCode& code = region->code;
  EXPECT_EQ(code.input, 1);
  EXPECT_THAT(code.filter, ElementsAre(3, 2));
  EXPECT_THAT(code.strides, ElementsAre(2, 2));
  EXPECT_EQ(region->window.auto_pad, "SAME_LOWER");
  EXPECT_EQ(code.groups, 2);
  EXPECT_EQ(code.channels, 12);
  EXPECT_TRUE(code.epilogue.bias);
  EXPECT_EQ(code.epilogue.residual, 0);
  EXPECT_TRUE(code.epilogue.residual_after_activation);
  EXPECT_EQ(code.epilogue.activation, (Activation{ActivationKind::clip, -1, 6}));
  EXPECT_EQ(region->weights().size(), 12U * 4 * 3 * 2);
  EXPECT_EQ(region->bias().size(), 12U);
}

TEST(ConvRegion, PadsThatFollowFromTheSize) {
  const Graph graph = graph_of(kConv);
  const ConvCode code = read_conv_region(graph)->code;
  EXPECT_EQ(code.padding, Padding::same_lower);
  EXPECT_THAT(code.pads_for(Dims{9, 8}), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(code.pads_for(Dims{8, 9}), ElementsAre(1, 1, 0, 0));
}

TEST(ConvRegion, ChannelsOfATransposedConvolutionAreThoseOfItsResult) {
  const Graph graph = graph_of(
      "(%x: f32[1,8,4]) {\n %w = constant f32[8,3,5]!01\n %y = ConvTranspose(%x, %w) {kernel_shape=[5], pads=[1, 1], "
      "strides=[2], dilations=[1], output_padding=[1], group=2}\n return %y\n}");
  const std::optional<ConvRegion> region = read_conv_region(graph);
  ASSERT_TRUE(region);
  EXPECT_TRUE(region->transposed);
  EXPECT_EQ(region->code.channels, 6);
  EXPECT_THAT(region->code.filter, ElementsAre(5));
  EXPECT_THAT(region->code.pads, ElementsAre(1, 1));
}

TEST(ConvRegion, SaysWhetherWeightsAreConstant) {
  const Graph graph = graph_of(
      "(%x: f32[1,8,4], %w: f32[8,8,3]) {\n %y = Conv(%x, %w) {kernel_shape=[3], pads=[1, 1], strides=[1], "
      "dilations=[1]}\n return %y\n}");
  const std::optional<ConvRegion> region = read_conv_region(graph);
  ASSERT_TRUE(region);
  EXPECT_EQ(reason_against_operands(graph, region->node()), "weights are not constant");
}

TEST(ConvRegion, RefusesWindowsThatNoKernelsCodeMayHave) {
  const Graph graph = graph_of(
      "(%x: f32[1,8,4]) {\n %w = constant f32[8,8,1]!01\n %y = Conv(%x, %w) {kernel_shape=[1], pads=[0, 0], "
      "strides=[1048576], dilations=[1]}\n return %y\n}");
  EXPECT_EQ(read_conv_region(graph)->match.refusal, "its window or its channels are beyond all bounds");
}

TEST(ConvCode, IsReadAsItWasWritten) {
  const Graph graph = graph_of(kConv);
  const Attrs attrs = write_fields(read_conv_region(graph)->code);
  EXPECT_EQ(attrs.text("activation"), "clip");
  EXPECT_EQ(attrs.text("auto_pad"), "SAME_LOWER");
  EXPECT_EQ(write_fields(read_fields<ConvCode>(attrs)).print(), attrs.print());
  for (const char* name : {"filter", "strides", "dilations"})
    for (const int64_t value : {int64_t{0}, int64_t{1} << 20}) {
      Attrs altered = attrs;
      altered.set(name, std::vector<int64_t>{1, value});
      EXPECT_THAT(error_of([&] { read_fields<ConvCode>(altered); }), HasSubstr(name));
    }
  Attrs unknown = attrs;
  unknown.set("activation", std::string("swish"));
  EXPECT_THAT(error_of([&] { read_fields<ConvCode>(unknown); }), HasSubstr("swish"));
}

TEST(ConvCode, OperandsFitTogether) {
  const Graph graph = graph_of(kConv);
  const ConvCode code = read_conv_region(graph)->code;
  const auto said = [&](const std::function<void(ConvCode&, KernelShapes&)>& alter) {
    ConvCode altered = code;
    KernelShapes shapes = conv_shapes();
    alter(altered, shapes);
    return error_of([&] { altered.require_operands(shapes); });
  };
  EXPECT_EQ(said([](ConvCode&, KernelShapes&) {}), "");
  EXPECT_THAT(said([](ConvCode& c, KernelShapes&) { c.input = 2; }), HasSubstr("input 2"));
  EXPECT_THAT(said([](ConvCode& c, KernelShapes&) { c.groups = 3; }), HasSubstr("3 groups"));
  EXPECT_THAT(said([](ConvCode& c, KernelShapes&) { c.channels = 14; }), HasSubstr("14 channels"));
  EXPECT_THAT(said([](ConvCode& c, KernelShapes&) { c.pads.pop_back(); }), HasSubstr("another rank"));
  EXPECT_THAT(said([](ConvCode& c, KernelShapes&) { c.filter.push_back(1); }), HasSubstr("another rank"));
  EXPECT_THAT(said([](ConvCode& c, KernelShapes&) { c.epilogue.residual = 5; }), HasSubstr("residual 5"));
  EXPECT_THAT(said([](ConvCode& c, KernelShapes&) { c.epilogue.residual = 1; }), HasSubstr("different sizes"));
  EXPECT_THAT(said([](ConvCode&, KernelShapes& s) { s.outputs.clear(); }), HasSubstr("0 results"));
  EXPECT_THAT(said([](ConvCode&, KernelShapes& s) { s.inputs[1].dims = {2, 8}; }), HasSubstr("takes 2x8"));
}

TEST(LinearRegion, ReadsBothOrdersOfWeights) {
  for (const int transposed : {0, 1}) {
    const Graph graph = graph_of(fmt::format(
        "(%x: f32[3,16]) {{\n %w = constant f32[{}]!01\n %y = Linear(%x, %w) {{trans_w={}}}\n return %y\n}}",
        transposed ? "24,16" : "16,24", transposed));
    const std::optional<LinearRegion> region = read_linear_region(graph);
    ASSERT_TRUE(region && region->match);
    EXPECT_EQ(region->code.n, 24);
    EXPECT_EQ(region->code.k, 16);
    EXPECT_EQ(region->transposed, transposed == 1);
    EXPECT_TRUE(region->bias().empty());
    KernelShapes shapes{.inputs = {f32({3, 16})}, .outputs = {f32({3, 24})}, .symbols = {}};
    EXPECT_EQ(error_of([&] { region->code.require_operands(shapes); }), "");
    shapes.outputs[0].dims = {4, 24};
    EXPECT_THAT(error_of([&] { region->code.require_operands(shapes); }), HasSubstr("takes"));
  }
}

TEST(LinearRegions, MatmulsOfOneInputAreReadEach) {
  const Graph graph = graph_of(
      "(%x: f32[2,6]) {\n %w = constant f32[6,4]!01\n %b = constant f32[4]!02\n %u = constant f32[6,4]!03\n "
      "%c = constant f32[4]!04\n %y = Linear(%x, %w, %b)\n %z = Linear(%x, %u, %c)\n return %y, %z\n}");
  const std::vector<LinearRegion> regions = read_linear_regions(graph);
  ASSERT_EQ(regions.size(), 2U);
  for (const LinearRegion& region : regions) {
    EXPECT_TRUE(region.match.plain() && region.match);
    EXPECT_TRUE(region.code.epilogue.bias);
    EXPECT_EQ(region.code.n, 4);
  }
  EXPECT_EQ(&regions[1].node(), graph.outputs()[1]->producer);
  EXPECT_NE(regions[0].bias(), regions[1].bias());
  EXPECT_FALSE(read_linear_region(graph)->match) << "as one matmul with an epilogue";
}

TEST(LinearRegions, MatmulsOfTheSameCodesAreReadEachByThoseWhoKnowCodes) {
  constexpr std::string_view kText =
      "(%x: i8[2,16]) {{\n %d = Decode(%x) {{scale=0.5, zero=3, to=\"f16\"}}\n %e = Decode(%x) {{scale={}, zero=3, "
      "to=\"f16\"}}\n %w = constant f16[16,4]!01\n %u = constant f16[16,4]!02\n %y = Linear(%d, %w)\n "
      "%z = Linear(%e, %u)\n return %y, %z\n}}";
  const Graph graph = graph_of(fmt::format(kText, 0.5));
  const std::vector<LinearRegion> regions = read_linear_regions(graph, Roundings::codes);
  ASSERT_EQ(regions.size(), 2U);
  for (const LinearRegion& region : regions) {
    EXPECT_TRUE(region.match);
    EXPECT_EQ(region.match.operand_codes, (Decoding{0.5F, 3, DType::i8}));
    EXPECT_EQ(region.code.input, 0);
  }
  EXPECT_EQ(read_linear_regions(graph)[0].match.refusal, "its tensors are codes");
  const Graph apart = graph_of(fmt::format(kText, 0.25));
  EXPECT_FALSE(read_linear_regions(apart, Roundings::codes)[0].match) << "codes of two scales";
}

TEST(LinearRegions, OtherwiseAreTheOneWithItsEpilogue) {
  const Graph graph = graph_of(
      "(%x: f32[2,6]) {\n %w = constant f32[6,4]!01\n %u = constant f32[6,5]!02\n %y = Linear(%x, %w)\n "
      "%z = Linear(%x, %u)\n return %y, %z\n}");
  ASSERT_EQ(read_linear_regions(graph).size(), 1U) << "sizes differ";
  EXPECT_FALSE(read_linear_regions(graph)[0].match);
  const Graph activated = graph_of(
      "(%x: f32[2,6]) {\n %w = constant f32[4,6]!01\n %c = Linear(%x, %w) {trans_w=1}\n %y = Relu(%c)\n return %y\n}");
  const std::vector<LinearRegion> one = read_linear_regions(activated);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_TRUE(one[0].match && one[0].transposed);
  EXPECT_EQ(one[0].code.epilogue.activation.kind, ActivationKind::relu);
  EXPECT_TRUE(read_linear_regions(graph_of(kConv)).empty());
}

TEST(MatmulRegion, BiasesAreOfColumns) {
  constexpr std::string_view kText =
      "(%a: f32[3,5,6], %b: f32[6,7]) {{\n %k = constant f32[{}]!01\n %c = MatMul(%a, %b)\n %y = Add(%c, %k)\n return "
      "%y\n}}";
  const Graph columns = graph_of(fmt::format(kText, "7")), rows = graph_of(fmt::format(kText, "5,1"));
  const std::optional<MatmulRegion> region = read_matmul_region(columns);
  ASSERT_TRUE(region && region->match);
  EXPECT_EQ(region->bias().size(), 7U);
  EXPECT_FALSE(region->code.epilogue.bias);
  EXPECT_THAT(read_matmul_region(rows)->match.refusal, HasSubstr("Add"));
}

TEST(MatmulRegion, ConstantsAreNumberedInTheOrderOfOperands) {
  const Graph graph = graph_of(
      "(%a: f32[3,5,6]) {\n %b = constant f32[6,7]!01\n %c = MatMul(%a, %b)\n %y = Mul(%c, 0.5)\n return %y\n}");
  std::optional<MatmulRegion> region = read_matmul_region(graph);
  ASSERT_TRUE(region && region->match);
  EXPECT_EQ(region->code.operands[0].place, 0);
  EXPECT_EQ(region->code.operands[1].place, -1);
  EXPECT_EQ(region->code.scale, 0.5F);
  ASSERT_EQ(region->constants.size(), 1U);
  const std::vector<ConstantSpec> specs = operand_constants(region->code.operands);
  ASSERT_EQ(specs.size(), 1U);
  EXPECT_THAT(specs[0].dims, ElementsAre(6, 7));
  region->code.operands[1].place = -2;
  EXPECT_THAT(error_of([&] { operand_constants(region->code.operands); }), HasSubstr("constant 1 as its constant 0"));
}

TEST(MatmulCode, SizesFitTogether) {
  MatmulCode code{.operands = {{.place = 0, .dims = {}}, {.place = 1, .dims = {}}}};
  const auto said = [&](const Dims& a, const Dims& b, const Dims& c) {
    const KernelShapes shapes{.inputs = {f32(a), f32(b)}, .outputs = {f32(c)}, .symbols = {}};
    return error_of([&] { MatmulSizes sizes(code, shapes); });
  };
  EXPECT_EQ(said({2, 1, 5, 6}, {3, 6, 7}, {2, 3, 5, 7}), "");
  EXPECT_THAT(said({2, 1, 5, 6}, {3, 4, 7}, {2, 3, 5, 7}), HasSubstr("multiplies"));
  EXPECT_THAT(said({2, 2, 5, 6}, {3, 6, 7}, {2, 3, 5, 7}), HasSubstr("multiplies"));
  EXPECT_THAT(said({6}, {6, 7}, {6, 7}), HasSubstr("multiplies"));
  code.operands.pop_back();
  EXPECT_THAT(said({5, 6}, {6, 7}, {5, 7}), HasSubstr("has 1 operands"));
}

TEST(AttentionLayer, TakesItsMaskFromInputsOrConstants) {
  const Dims q{1, 2, 5, 8}, keys{1, 2, 7, 8};
  AttentionCode code;
  for (const int64_t i : {0, 1, 2}) code.operands.push_back({.place = i, .dims = {}});
  const KernelShapes shapes{.inputs = {f32(q), f32(keys), f32(keys)}, .outputs = {f32(q)}, .symbols = {}};
  EXPECT_FALSE(AttentionLayer(code, shapes).mask);
  code.operands.push_back({.place = -1, .dims = {5, 7}});
  const AttentionLayer layer(code, shapes);
  ASSERT_TRUE(layer.mask);
  EXPECT_THAT(layer.mask->strides, ElementsAre(0, 0, 7, 1));
  const auto said = [&] { return error_of([&] { AttentionLayer altered(code, shapes); }); };
  code.operands[3].dims = {4, 7};
  EXPECT_THAT(said(), HasSubstr("mask of 4x7"));
  code.operands[3] = {.place = 3, .dims = {}};
  EXPECT_THAT(said(), HasSubstr("input 3 of 3"));
  code.operands[0] = {.place = -1, .dims = q};
  EXPECT_THAT(said(), HasSubstr("constant queries"));
}

}  // namespace
}  // namespace hone
