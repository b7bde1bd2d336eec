// SPDX-License-Identifier: Apache-2.0
//
// Which integers a network's input may hold, by the operators that read it.
#include <gtest/gtest.h>

#include "ir/range.h"
#include "ops/all.h"

namespace hone {
namespace {

std::optional<IntegerRange> range_of_first_input(std::string_view text) {
  return accepted_range(parse_graph(text, find_op).inputs()[0]);
}

TEST(AcceptedRange, OfIndicesIsTheSizeOfTheAxis) {
  EXPECT_EQ(range_of_first_input(R"((%ids: i64[4], %x: f32[30,10]) {
    %y = Gather(%x, %ids) {axis=-1}
    return %y
  })"),
            (IntegerRange{0, 9}));
  EXPECT_EQ(range_of_first_input(R"((%ids: i64[4,2], %x: f32[30,20,7]) {
    %y = GatherND(%x, %ids)
    return %y
  })"),
            (IntegerRange{0, 19}))
      << "one range for positions along several axes";
}

TEST(AcceptedRange, OfImageNumbersIsTheBatch) {
  EXPECT_EQ(range_of_first_input(R"((%ids: i64[5], %x: f32[3,4,8,8], %boxes: f32[5,4]) {
    %y = RoiAlign(%x, %boxes, %ids)
    return %y
  })"),
            (IntegerRange{0, 2}));
}

TEST(AcceptedRange, IsTheNarrowestOfAllConsumersSeenThroughWhatHandsIntegersOn) {
  EXPECT_EQ(range_of_first_input(R"((%ids: i64[4], %x: f32[30,10], %z: f32[7,10]) {
    %axis = constant i64[1]{0}
    %ids2 = Unsqueeze(%ids, %axis)
    %ids3 = Concat(%ids2, %ids2) {axis=0}
    %a = Gather(%x, %ids)
    %b = Gather(%z, %ids3)
    return %a, %b
  })"),
            (IntegerRange{0, 6}));
}

TEST(AcceptedRange, OfLengthsBeginsAtOne) {
  EXPECT_EQ(range_of_first_input(R"((%lengths: i32[4], %x: f32[12,4,8], %w: f32[1,8,8], %r: f32[1,8,8]) {
    %y = RNN(%x, %w, %r, _, %lengths) {hidden_size=8}
    return %y
  })"),
            (IntegerRange{1, 12}));
  EXPECT_EQ(range_of_first_input(R"((%lengths: i64[4], %x: f32[12,4,8]) {
    %y = ReverseSequence(%x, %lengths) {time_axis=0, batch_axis=1}
    return %y
  })"),
            (IntegerRange{1, 12}));
}

TEST(AcceptedRange, OfMasksIsZeroOrOne) {
  EXPECT_EQ(range_of_first_input("(%mask: i64[4]) {\n %y = Cast(%mask) {to=\"f32\"}\n return %y\n}"),
            (IntegerRange{0, 1}));
  EXPECT_FALSE(range_of_first_input(R"((%shape: i64[2], %x: f32[30,10]) {
    %y = Reshape(%x, %shape)
    return %y
  })"))
      << "an operand beside the one that is handed on";
}

TEST(AcceptedRange, AdmitsTheFirstIndexAloneWhereOnlyTheRunKnowsTheSize) {
  EXPECT_EQ(range_of_first_input("(%ids: i64[4], %x: f32[n,10]) {\n %y = Gather(%x, %ids)\n return %y\n}"),
            (IntegerRange{0, 0}));
}

TEST(AcceptedRange, IsOpenWhereAnyValueWillDo) {
  EXPECT_FALSE(range_of_first_input("(%ids: i64[4]) {\n %y = Add(%ids, %ids)\n return %y\n}"));
  EXPECT_FALSE(range_of_first_input("(%x: f32[4]) {\n %y = Cast(%x) {to=\"i64\"}\n return %y\n}"));
}

}  // namespace
}  // namespace hone
