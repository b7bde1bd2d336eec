// SPDX-License-Identifier: Apache-2.0
#include "tuner/few_rows.h"

#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ops/all.h"

namespace hone {
namespace {

TEST(FewRows, OfALargeBatchTwoEntriesAreEvaluatedWhereEntriesStayApart) {
  const auto parse = [](std::string_view text) { return parse_graph(text, find_op); };
  const std::optional<FewEntries> conv = with_two_entries(parse(R"((%x: f32[32,8,64,64], %r: f32[32,8,64,64]) {
    %w = constant f32[8,8,1,1]!1
    %c = Conv(%x, %w) {kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1], dilations=[1, 1]}
    %y = Add(%c, %r)
    return %y
  })"));
  ASSERT_TRUE(conv);
  EXPECT_EQ(conv->count, 32);
  EXPECT_EQ(conv->region.inputs()[0]->type.shape, (Shape{2, 8, 64, 64}));
  EXPECT_EQ(conv->region.outputs()[0]->type.shape, (Shape{2, 8, 64, 64}));
  EXPECT_FALSE(with_two_entries(parse("(%x: f32[32,4,64,256]) {\n %y = Softmax(%x) {axis=0}\n return %y\n}")));
  EXPECT_TRUE(with_two_entries(parse("(%x: f32[32,4,64,256]) {\n %y = Softmax(%x) {axis=-1}\n return %y\n}")));
  EXPECT_FALSE(with_two_entries(parse("(%x: f32[32,4,2,2]) {\n %y = Softmax(%x) {axis=1}\n return %y\n}")));  // small
  EXPECT_FALSE(with_two_entries(parse(R"((%x: f32[32,400,96]) {
    %c = constant f32[32,1,96]!1
    %y = Concat(%c, %x) {axis=1}
    return %y
  })")));  // the constant has entries, too
  EXPECT_FALSE(with_two_entries(parse(R"((%x: f32[64,256,64], %w: f32[64,64]) {
    %y = MatMul(%x, %w)
    return %y
  })")));  // a matrix for all entries, whose rows are as many
  EXPECT_EQ(repeated_entry(0, 5), 0);
  EXPECT_EQ(repeated_entry(3, 5), 1);
  EXPECT_EQ(repeated_entry(4, 5), 1);
}

TEST(FewRows, OfABatchOfOneTwoRowsAreEvaluatedWhereRowsStayApart) {
  const auto shapes_of = [](std::string_view text) {
    const std::optional<FewEntries> few = with_two_rows(parse_graph(text, find_op));
    std::vector<std::string> shapes;
    if (few) {
      for (const Value* input : few->region.inputs()) shapes.push_back(input->type.shape.text());
      shapes.push_back(few->region.outputs()[0]->type.shape.text());
    }
    return shapes;
  };
  using Shapes = std::vector<std::string>;
  EXPECT_EQ(shapes_of(R"((%x: f32[1,4096,64], %r: f32[1,4096,256]) {
    %w = constant f32[64,256]!1
    %b = constant f32[256]!2
    %l = Linear(%x, %w, %b)
    %s = Silu(%l)
    %y = Add(%s, %r)
    return %y
  })"),
            (Shapes{"1,2,64", "1,2,256", "1,2,256"}));
  // What nobody reads is as it was.
  EXPECT_EQ(shapes_of("(%x: f32[1,4096,512], %u: f32[7]) {\n %y = Relu(%x)\n return %y\n}"),
            (Shapes{"1,2,512", "7", "1,2,512"}));
  // Queries see all keys and values; of heads, each its own.
  EXPECT_EQ(shapes_of(R"((%q: f32[1,2048,8,64], %k: f32[1,1024,8,64], %v: f32[1,1024,8,64]) {
    %y = ScaledDotProductAttention(%q, %k, %v) {layout="bshd"}
    return %y
  })"),
            (Shapes{"1,2,8,64", "1,1024,8,64", "1,1024,8,64", "1,2,8,64"}));
  EXPECT_EQ(shapes_of(R"((%q: f32[1,8,2048,64], %k: f32[1,8,1024,64], %v: f32[1,8,1024,64], %m: f32[1,1,2048,1024]) {
    %y = ScaledDotProductAttention(%q, %k, %v, %m)
    return %y
  })"),
            (Shapes{"1,2,2048,64", "1,2,1024,64", "1,2,1024,64", "1,1,2048,1024", "1,2,2048,64"}));
  for (
      const std::string_view mixed : {
          "(%q: f32[1,8,2048,64], %k: f32[1,2,1024,64], %v: f32[1,2,1024,64]) {\n"
          " %y = ScaledDotProductAttention(%q, %k, %v)\n return %y\n}",                    // heads share keys
          "(%x: f32[1,4096,512]) {\n %y = Softmax(%x) {axis=1}\n return %y\n}",            // no such trait
          "(%x: f32[1,4096,512], %r: f32[4096,512]) {\n %y = Add(%x, %r)\n return %y\n}",  // a row for each in another axis
          "(%x: f32[2,4096,512], %r: f32[2,4096,512]) {\n %y = Add(%x, %r)\n return %y\n}",
      })
    EXPECT_EQ(shapes_of(mixed), Shapes{}) << mixed;
}

}  // namespace
}  // namespace hone
