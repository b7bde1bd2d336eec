// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "backends/cpu/tactic_check.h"

namespace hone::cpu {
namespace {

/// `operands` are the shapes of q, k, v and possibly a mask.
int check_attention(const std::vector<std::string>& shapes, std::string_view layout, const CheckOptions& options) {
  constexpr const char* kNames[] = {"%q", "%k", "%v", "%mask"};
  std::string inputs, operands;
  for (size_t i = 0; i < shapes.size(); ++i) {
    inputs += fmt::format("{}{}: f32[{}]", i ? ", " : "", kNames[i], shapes[i]);
    operands += fmt::format("{}{}", i ? ", " : "", kNames[i]);
  }
  const std::string text =
      fmt::format("({}) {{\n %y = ScaledDotProductAttention({}) {{scale=0.35, layout=\"{}\"}}\n return %y\n}}", inputs,
                  operands, layout);
  return check_tactics(text, "attention", options);
}

const CheckOptions kLengths{
    .tolerance = 1e-4, .seed = 3, .tuned = {{"S", 12}}, .run = {{{"S", 12}}, {{"S", 1}}, {{"S", 37}}, {{"S", 130}}}};

TEST(AttentionTactic, AgreesWithTheReferenceInBothLayouts) {
  EXPECT_GT(check_attention({"2,3,S,16", "2,3,S,16", "2,3,S,16"}, "bhsd", kLengths), 0);
  EXPECT_GT(check_attention({"2,S,3,16", "2,S,3,16", "2,S,3,24"}, "bshd", kLengths), 0);
}

TEST(AttentionTactic, AddsMasksThatBroadcastOnAnyAxis) {
  for (const char* mask : {"2,3,S,S", "1,1,S,S", "2,1,1,S", "S,S", "S", "1", "2,3,S,1"})
    EXPECT_GT(check_attention({"2,3,S,8", "2,3,S,8", "2,3,S,8", mask}, "bhsd", kLengths), 0) << mask;
}

TEST(AttentionTactic, SharesHeadsOfKeysAndValuesAmongQueries) {
  EXPECT_GT(check_attention({"1,6,S,8", "1,2,S,8", "1,2,S,8"}, "bhsd", kLengths), 0);
  EXPECT_GT(check_attention({"1,S,6,8", "1,S,2,8", "1,S,2,8"}, "bshd", kLengths), 0);
}

TEST(AttentionTactic, AttendsToMoreKeysThanQueries) {
  EXPECT_GT(check_attention({"1,2,5,8", "1,2,S,8", "1,2,S,8"}, "bhsd", kLengths), 0);
}

TEST(AttentionTactic, CutsLongSequencesIntoBlocks) {
  EXPECT_GT(check_attention({"1,1,S,8", "1,1,2100,8", "1,1,2100,8"}, "bhsd",
                            {.tolerance = 1e-4, .seed = 3, .tuned = {{"S", 100}}}),
            0);
}

}  // namespace
}  // namespace hone::cpu
