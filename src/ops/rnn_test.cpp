// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers, Resize and the operators that only passes make, against numbers worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/eval_for_test.h"

namespace hone {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Rnn, OneStepIsTanhOfTheSum) {
  const auto results =
      run_all("RNN", {floats({1, 1, 1}, {2}), floats({1, 1, 1}, {0.5F}), floats({1, 1, 1}, {3})}, {}, 2);
  expect_near(results[0], {1, 1, 1, 1}, {std::tanh(1.0)});
  expect_near(results[1], {1, 1, 1}, {std::tanh(1.0)});
}

TEST(Rnn, ReverseStartsAtTheEndOfEachSequence) {
  const Attrs attrs{{"direction", std::string("reverse")}};
  const Tensor lengths = Tensor::of<int32_t>({2}, {2, 1});
  const auto results = run_all(
      "RNN", {floats({2, 2, 1}, {1, 2, 3, 4}), floats({1, 1, 1}, {1}), floats({1, 1, 1}, {0}), Tensor(), lengths},
      attrs, 2);
  expect_near(results[0], {2, 1, 2, 1}, {std::tanh(1.0), std::tanh(2.0), std::tanh(3.0), 0});
  expect_near(results[1], {1, 2, 1}, {std::tanh(1.0), std::tanh(2.0)});
}

TEST(Lstm, OneStepFollowsTheGates) {
  // gates i, o, f, c with weights 1, 2, 3, 4 and a cell that starts at 1
  const auto results =
      run_all("LSTM",
              {floats({1, 1, 1}, {1}), floats({1, 4, 1}, {1, 2, 3, 4}), floats({1, 4, 1}, {0, 0, 0, 0}), Tensor(),
               Tensor(), floats({1, 1, 1}, {0}), floats({1, 1, 1}, {1})},
              {}, 3);
  const double cell = sigmoid(3) + sigmoid(1) * std::tanh(4.0);
  expect_near(results[2], {1, 1, 1}, {cell});
  expect_near(results[1], {1, 1, 1}, {sigmoid(2) * std::tanh(cell)});
}

TEST(Gru, LinearBeforeResetMovesTheReset) {
  const std::vector<Tensor> operands{floats({1, 1, 1}, {1}),
                                     floats({1, 3, 1}, {1, 2, 3}),
                                     floats({1, 3, 1}, {0, 0, 1}),
                                     floats({1, 6}, {0, 0, 0, 0, 0, 1}),
                                     Tensor(),
                                     floats({1, 1, 1}, {1})};
  const double update = sigmoid(1), reset = sigmoid(2);
  expect_near(run_all("GRU", operands, {}, 2)[1], {1, 1, 1}, {(1 - update) * std::tanh(3 + reset + 1) + update});
  expect_near(run_all("GRU", operands, {{"linear_before_reset", int64_t{1}}}, 2)[1], {1, 1, 1},
              {(1 - update) * std::tanh(3 + reset * 2) + update});
}

TEST(Resize, NearestAndLinearUpByTwo) {
  const Tensor x = floats({1, 1, 2}, {1, 3}), scales = floats({3}, {1, 1, 2});
  expect_near(run_op("Resize", {x, Tensor(), scales}), {1, 1, 4}, {1, 1, 3, 3});
  expect_near(run_op("Resize", {x, Tensor(), scales}, {{"mode", std::string("linear")}}), {1, 1, 4}, {1, 1.5, 2.5, 3});
  expect_near(
      run_op("Resize", {x, Tensor(), Tensor(), integers({1, 1, 3})},
             {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("align_corners")}}),
      {1, 1, 3}, {1, 2, 3});
}

TEST(Attention, LayoutsAgreeAndKeysMayBeShared) {
  const Tensor q = counted({1, 1, 2, 2}), k = counted({1, 1, 2, 2}, 1), v = floats({1, 1, 2, 1}, {0, 1});
  const Tensor mask = floats({2, 2}, {0, -1e30F, 0, 0});
  const Tensor y = run_op("ScaledDotProductAttention", {q, k, v, mask}, {{"scale", 0.5}});
  expect_near(y, {1, 1, 2, 1}, {0, sigmoid(0.5 * ((2 * 3 + 3 * 4) - (2 * 1 + 3 * 2)))});
}

TEST(View, KeepsTheBytesUnderAnotherShape) {
  expect_near(run_op("View", {counted({2, 3})}, {{"shape", std::vector<std::string>{"3", "2"}}}), {3, 2},
              {0, 1, 2, 3, 4, 5});
}

TEST(Trilu, KeepsOneTriangle) {
  expect_near(run_op("Trilu", {counted({2, 2}, 1)}), {2, 2}, {1, 2, 0, 4});
  expect_near(run_op("Trilu", {counted({2, 2}, 1), Tensor::scalar<int64_t>(-1)}, {{"upper", int64_t{0}}}), {2, 2},
              {0, 0, 3, 0});
}

}  // namespace
}  // namespace hone
