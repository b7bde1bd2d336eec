// SPDX-License-Identifier: Apache-2.0
//
// Reductions, normalisations, Softmax, and what runs along one axis.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/eval_for_test.h"

namespace hone {
namespace {

TEST(Reduce, AxesMayBeNegativeAndDropTheirSizes) {
  expect_near(run_op("ReduceSum", {counted({2, 3}), integers({-1})}, {{"keepdims", int64_t{0}}}), {2}, {3, 12});
  expect_near(run_op("ReduceMean", {counted({2, 3, 2}), integers({0, 2})}), {1, 3, 1}, {3.5, 5.5, 7.5});
}

TEST(Reduce, NoAxesMeansAllUnlessToldOtherwise) {
  expect_near(run_op("ReduceMax", {counted({2, 2})}, {{"keepdims", int64_t{0}}}), {}, {3});
  expect_near(run_op("ReduceMax", {counted({2, 2})}, {{"noop_with_empty_axes", int64_t{1}}}), {2, 2}, {0, 1, 2, 3});
}

TEST(Reduce, LogSumExpDoesNotOverflow) {
  expect_near(run_op("ReduceLogSumExp", {floats({2}, {1000, 1000})}), {1}, {1000 + std::log(2.0)}, 1e-4);
}

TEST(Loss, TargetsThatDoNotFitTheScoresAreRefused) {
  EXPECT_NO_THROW(run_op("NegativeLogLikelihoodLoss", {counted({2, 3}), integers({0, 2})}));
  EXPECT_THROW(run_op("NegativeLogLikelihoodLoss", {counted({2, 3}), integers({0, 1, 2, 0})}), Error);
  EXPECT_THROW(run_op("NegativeLogLikelihoodLoss", {counted({2, 3}), integers({0})}), Error);
}

TEST(Reduce, IntegersAreExact) {
  EXPECT_EQ(run_op("ReduceProd", {integers({(int64_t{1} << 53) + 1, 3})}).integer(0), 3 * ((int64_t{1} << 53) + 1));
}

TEST(Reduce, IntegersWrap) {
  constexpr int64_t kMost = INT64_MAX, kLeast = INT64_MIN;
  EXPECT_EQ(run_op("ReduceSum", {integers({kMost, 2})}).integer(0), kLeast + 1);
  EXPECT_EQ(run_op("ReduceProd", {integers({kMost, 2})}).integer(0), -2);
  EXPECT_EQ(run_op("ReduceSumSquare", {integers({int64_t{1} << 32, 3})}).integer(0), 9);
  EXPECT_EQ(run_op("ReduceL1", {integers({kLeast})}).integer(0), kLeast);
  EXPECT_EQ(run_op("ReduceLogSum", {integers({0})}).integer(0), kLeast);  // of minus infinity
  EXPECT_EQ(run_op("CumSum", {integers({kMost, 1}), integers({0})}).integer(1), kLeast);
  EXPECT_EQ(run_op("Mod", {integers({kMost - 1}), integers({kMost})}).integer(0), kMost - 1);
}

TEST(Reduce, ProductsOfSizesStayExpressions) {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, Shape{Dim::symbol("N"), 3, Dim::symbol("S")}});
  const Node* shape = graph.add(*find_op("Shape"), {x});
  const Node* product = graph.add(*find_op("ReduceProd"), {shape->output()}, {{"keepdims", int64_t{0}}});
  ASSERT_NE(product->output()->symbolic, nullptr);
  EXPECT_EQ(product->output()->symbolic->front(), Dim(3) * Dim::symbol("N") * Dim::symbol("S"));
}

TEST(Norm, RefusesAnEmptyScale) { EXPECT_THROW(run_op("RMSNormalization", {counted({2, 1}), floats({0}, {})}), Error); }

TEST(Reduce, RefusesAnAxisOutOfRange) { EXPECT_THROW(run_op("ReduceSum", {counted({2, 3}), integers({2})}), Error); }

TEST(Softmax, RowsSumToOneHoweverLarge) {
  expect_near(run_op("Softmax", {floats({2, 2}, {1000, 1000, -1000, 0})}), {2, 2}, {0.5, 0.5, 0, 1});
  expect_near(run_op("Softmax", {floats({2, 2}, {0, 5, 0, 5})}, {{"axis", int64_t{0}}}), {2, 2}, {0.5, 0.5, 0.5, 0.5});
  expect_near(run_op("LogSoftmax", {floats({1, 2}, {0, 0})}), {1, 2}, {-std::log(2.0), -std::log(2.0)});
  expect_near(run_op("Hardmax", {floats({1, 3}, {1, 2, 2})}), {1, 3}, {0, 1, 0});
}

TEST(Norm, LayerNormalizationGivesMomentsOnRequest) {
  const auto results = run_all(
      "LayerNormalization", {floats({1, 2}, {1, 3}), floats({2}, {1, 2}), floats({2}, {0, 10})}, {{"epsilon", 0.0}}, 3);
  expect_near(results[0], {1, 2}, {-1, 12});
  expect_near(results[1], {1, 1}, {2});
  expect_near(results[2], {1, 1}, {1});
}

TEST(Norm, RmsDoesNotCentre) {
  expect_near(run_op("RMSNormalization", {floats({1, 2}, {3, 4}), floats({2}, {1, 1})}, {{"epsilon", 0.0}}), {1, 2},
              {3 / std::sqrt(12.5), 4 / std::sqrt(12.5)});
}

TEST(Norm, BatchNormalizationIsPerChannel) {
  const Tensor y =
      run_op("BatchNormalization",
             {counted({1, 2, 2}), floats({2}, {1, 2}), floats({2}, {0, 1}), floats({2}, {0, 2}), floats({2}, {1, 4})},
             {{"epsilon", 0.0}});
  expect_near(y, {1, 2, 2}, {0, 1, 1, 2});
}

TEST(Norm, GroupOfOneChannelEqualsInstance) {
  const Tensor x = counted({2, 2, 3}), scale = floats({2}, {1, 2}), bias = floats({2}, {0, 1});
  expect_near(run_op("GroupNormalization", {x, scale, bias}, {{"num_groups", int64_t{2}}}), {2, 2, 3},
              values_of(run_op("InstanceNormalization", {x, scale, bias})));
}

TEST(ArgMax, TakesTheFirstOrTheLastOfEquals) {
  EXPECT_EQ(run_op("ArgMax", {floats({3}, {1, 2, 2})}).integer(0), 1);
  EXPECT_EQ(run_op("ArgMax", {floats({3}, {1, 2, 2})}, {{"select_last_index", int64_t{1}}}).integer(0), 2);
}

TEST(CumSum, RunsBothWaysAndMayLeaveOutItself) {
  expect_near(run_op("CumSum", {counted({3}, 1), Tensor::scalar<int64_t>(0)}), {3}, {1, 3, 6});
  expect_near(run_op("CumSum", {counted({3}, 1), Tensor::scalar<int64_t>(0)},
                     {{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}}),
              {3}, {5, 3, 0});
}

}  // namespace
}  // namespace hone
