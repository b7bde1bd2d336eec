// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse_weights.h"

#include <gtest/gtest.h>

#include "ops/all.h"
#include "ops/support.h"

namespace hone {
namespace {

TEST(SparseWeights, AreThoseOfWhichTwoOfFourChannelsAreZero) {
  const Tensor rows = Tensor::of<float>({2, 6}, {1, 0, 0, 2, 3, 4, 0, 0, 0, 0, 0, 5});
  EXPECT_TRUE(is_sparse(rows, 1));
  EXPECT_FALSE(is_sparse(rows, 0)) << "two channels are no four";
  EXPECT_FALSE(is_sparse(Tensor::of<float>({1, 4}, {1, 2, 0, 3}), 1));
  EXPECT_TRUE(is_sparse(Tensor::of<float>({4, 2}, {1, 0, 2, 0, 0, 3, 0, 4}), 0));
  EXPECT_FALSE(is_sparse(Tensor::of<float>({4, 2}, {1, 0, 2, 0, 3, 0, 0, 4}), 0));
  EXPECT_TRUE(is_sparse(Tensor::of<int8_t>({1, 4}, {7, 7, 1, 2}), 1, 7));
}

TEST(SparseWeights, ArePrunedToTheFirstTwoOfFourChannels) {
  const Tensor rows = Tensor::of<float>({2, 6}, {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6});
  EXPECT_EQ(read_doubles(pruned(rows, 1)), (std::vector<double>{1, 2, 0, 0, 5, 6, -1, -2, 0, 0, -5, -6}));
  const Tensor columns = Tensor::of<int8_t>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(read_doubles(pruned(columns, 0, 9)), (std::vector<double>{1, 2, 3, 4, 9, 9, 9, 9}));
  EXPECT_TRUE(is_sparse(pruned(rows, 1), 1));
}

TEST(SparseWeights, OfARegionAreAllOrNone) {
  Graph graph = parse_graph(
      "(%x: f32[3,8]) {\n"
      "  %u = constant f32[8,5]!0\n"
      "  %v = constant f32[5,8]!1\n"
      "  %y = Linear(%x, %u)\n"
      "  %z = Linear(%x, %v) {trans_w=1}\n"
      "  return %y, %z\n"
      "}\n",
      find_op);
  const auto sparse = [&] { return have_sparse_weights(graph.nodes()); };
  EXPECT_FALSE(sparse());
  const Tensor dense = *graph.nodes()[1]->input(1)->constant;
  prune_weights(graph);
  EXPECT_TRUE(sparse());
  graph.nodes()[1]->input(1)->constant = dense;
  EXPECT_FALSE(sparse());
  EXPECT_FALSE(have_sparse_weights({})) << "there are none";
}

}  // namespace
}  // namespace hone
