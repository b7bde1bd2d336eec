// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "ops/eval_for_test.h"
#include "ops/gemm_loops.h"

namespace hone {
namespace {

Attrs window(Dims kernel, Dims strides, Dims pads) {
  return {{"kernel_shape", std::move(kernel)}, {"strides", std::move(strides)}, {"pads", std::move(pads)}};
}

TEST(GemmLoops, AgreeWithThePlainTripleLoop) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 1, 1}, {5, 9, 3}, {4, 8, 256}, {13, 530, 300}, {200, 17, 257}}) {
    std::vector<float> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(n * k)),
        c(static_cast<size_t>(m * n), 1.0F);
    for (float& value : a) value = uniform(random);
    for (float& value : b) value = uniform(random);
    add_matmul_parallel(m, n, k, {a.data(), k, 1}, {b.data(), 1, k}, c.data(), n);  // b is held transposed
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double expected = 1;
        for (int64_t p = 0; p < k; ++p)
          expected += static_cast<double>(a[static_cast<size_t>(i * k + p)]) * b[static_cast<size_t>(j * k + p)];
        ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], expected, 1e-4)
            << "seed " << kSeed << ", " << m << "x" << n << "x" << k;
      }
    }
  }
}

TEST(MatMul, VectorsAndBatchesFollowNumpy) {
  expect_near(run_op("MatMul", {counted({3}), counted({3})}), {}, {5});
  expect_near(run_op("MatMul", {counted({2}), counted({2, 2})}), {2}, {2, 3});
  expect_near(run_op("MatMul", {counted({2, 1, 1, 2}), counted({2, 2, 1})}), {2, 2, 1, 1}, {1, 3, 3, 13});
  EXPECT_THROW(run_op("MatMul", {counted({2, 3}), counted({2, 3})}), Error);
}

TEST(MatMul, IntegersAreExact) {
  const Tensor big = Tensor::of<int64_t>({1, 1}, {(int64_t{1} << 40) + 1});
  EXPECT_EQ(run_op("MatMul", {big, Tensor::of<int64_t>({1, 1}, {3})}).integer(0), 3 * ((int64_t{1} << 40) + 1));
}

TEST(Einsum, BatchesDiagonalsAndImpliedResults) {
  const Tensor a = counted({2, 2, 3}), b = counted({2, 3, 2});
  expect_near(run_op("Einsum", {a, b}, {{"equation", std::string("...ij, ...jk -> ...ik")}}), {2, 2, 2},
              values_of(run_op("MatMul", {a, b})));
  expect_near(run_op("Einsum", {counted({2, 2})}, {{"equation", std::string("ii")}}), {}, {3});
  expect_near(run_op("Einsum", {counted({2, 3})}, {{"equation", std::string("ba")}}), {3, 2}, {0, 3, 1, 4, 2, 5});
}

TEST(Gemm, TransposesScalesAndBroadcastsItsBias) {
  const Attrs attrs{{"alpha", 2.0}, {"beta", 0.5}, {"transA", int64_t{1}}, {"transB", int64_t{1}}};
  expect_near(run_op("Gemm", {counted({2, 1}), counted({2, 2}), floats({2}, {10, 20})}, attrs), {1, 2}, {7, 16});
}

TEST(Linear, EqualsMatMulPlusBias) {
  const Tensor x = counted({2, 2, 3}), w = counted({3, 4}, 1), b = floats({4}, {1, 2, 3, 4});
  expect_near(run_op("Linear", {x, w, b}), {2, 2, 4}, values_of(run_op("Add", {run_op("MatMul", {x, w}), b})));
}

TEST(Conv, TwoDimensionsWithPadding) {
  const Tensor y = run_op("Conv", {counted({1, 1, 3, 3}), floats({1, 1, 3, 3}, std::vector<float>(9, 1))},
                          window({3, 3}, {2, 2}, {1, 1, 1, 1}));
  expect_near(y, {1, 1, 2, 2}, {8, 12, 20, 24});
}

TEST(Conv, GroupsDilationsAndBias) {
  const Attrs attrs{{"kernel_shape", Dims{2}}, {"dilations", Dims{2}}, {"group", int64_t{2}}};
  expect_near(run_op("Conv", {counted({1, 2, 4}), floats({2, 1, 2}, {1, 1, 1, -1}), floats({2}, {0, 100})}, attrs),
              {1, 2, 2}, {2, 4, 98, 98});
}

TEST(Conv, ThreeDimensionsSumTheBlock) {
  expect_near(run_op("Conv", {counted({1, 1, 2, 2, 2}), floats({1, 1, 2, 2, 2}, std::vector<float>(8, 1))}, {}),
              {1, 1, 1, 1, 1}, {28});
}

TEST(Conv, RefusesChannelsThatDoNotFit) {
  EXPECT_THROW(run_op("Conv", {counted({1, 3, 4, 4}), counted({2, 2, 3, 3})}), Error);
}

TEST(Conv, SymbolicSizesGiveExpressions) {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, Shape{Dim::symbol("N"), 3, Dim::symbol("H"), 8}});
  const Node* node =
      graph.add(*find_op("Conv"), {x, graph.add_constant(counted({4, 3, 3, 3}))}, window({3, 3}, {2, 2}, {1, 1, 1, 1}));
  EXPECT_EQ(node->output()->type.shape,
            (Shape{Dim::symbol("N"), 4, floor_divide(Dim::symbol("H") - Dim(1), Dim(2)) + Dim(1), 4}));
}

TEST(ConvTranspose, SpreadsEveryElement) {
  Attrs attrs = window({2}, {2}, {0, 0});
  expect_near(run_op("ConvTranspose", {floats({1, 1, 2}, {1, 2}), floats({1, 1, 2}, {10, 1})}, attrs), {1, 1, 4},
              {10, 1, 20, 2});
  attrs.set("output_padding", Dims{1});
  expect_near(run_op("ConvTranspose", {floats({1, 1, 2}, {1, 2}), floats({1, 1, 2}, {10, 1})}, attrs), {1, 1, 5},
              {10, 1, 20, 2, 0});
}

TEST(Pool, CeilModeAddsAWindowOnlyInsideTheInput) {
  Attrs attrs = window({2}, {2}, {0, 0});
  attrs.set("ceil_mode", int64_t{1});
  expect_near(run_op("MaxPool", {counted({1, 1, 5})}, attrs), {1, 1, 3}, {1, 3, 4});
  Attrs padded = window({2}, {3}, {1, 1});
  padded.set("ceil_mode", int64_t{1});
  EXPECT_EQ(run_op("MaxPool", {counted({1, 1, 5})}, padded).dims(), (Dims{1, 1, 2}));
}

TEST(Pool, AverageCountsPaddingOnRequest) {
  Attrs attrs = window({2}, {2}, {1, 1});
  expect_near(run_op("AveragePool", {counted({1, 1, 2}, 2)}, attrs), {1, 1, 2}, {2, 3});
  attrs.set("count_include_pad", int64_t{1});
  expect_near(run_op("AveragePool", {counted({1, 1, 2}, 2)}, attrs), {1, 1, 2}, {1, 1.5});
}

TEST(Pool, MaxPoolNamesTheElementsItTook) {
  const auto results =
      run_all("MaxPool", {floats({1, 1, 2, 2}, {1, 4, 3, 2})}, window({2, 1}, {1, 1}, {0, 0, 0, 0}), 2);
  expect_near(results[0], {1, 1, 1, 2}, {3, 4});
  EXPECT_THAT(results[1].integers(), testing::ElementsAre(2, 1));
}

TEST(Pool, GlobalPoolsKeepTheRank) {
  expect_near(run_op("GlobalAveragePool", {counted({1, 2, 2, 2})}), {1, 2, 1, 1}, {1.5, 5.5});
  expect_near(run_op("GlobalMaxPool", {counted({1, 2, 2, 2})}), {1, 2, 1, 1}, {3, 7});
}

}  // namespace
}  // namespace hone
