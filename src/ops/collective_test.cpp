// SPDX-License-Identifier: Apache-2.0
//
// The meaning of collectives, and what their inference refuses.
#include "ops/collective.h"

#include <gtest/gtest.h>

#include "ops/eval_for_test.h"

namespace hone {
namespace {

Attrs attrs_of(const std::string& operation, int64_t size, int64_t root = 0, const std::string& reduce = "sum") {
  return {{"operation", operation}, {"group_size", size}, {"root", root}, {"reduce", reduce}};
}

std::vector<std::vector<double>> results(const Attrs& attrs, const std::vector<Tensor>& operands) {
  std::vector<std::vector<double>> all;
  for (const Tensor& result : evaluate_collective(attrs, operands)) all.push_back(values_of(result));
  return all;
}

using Rows = std::vector<std::vector<double>>;

TEST(Collective, EveryRankHasTheSumTheProductTheExtremesOrTheMean) {
  const std::vector<Tensor> operands{floats({2}, {1, 5}), floats({2}, {3, -2})};
  EXPECT_EQ(results(attrs_of("all_reduce", 2), operands), Rows({{4, 3}, {4, 3}}));
  EXPECT_EQ(results(attrs_of("all_reduce", 2, 0, "prod"), operands), Rows({{3, -10}, {3, -10}}));
  EXPECT_EQ(results(attrs_of("all_reduce", 2, 0, "max"), operands), Rows({{3, 5}, {3, 5}}));
  EXPECT_EQ(results(attrs_of("all_reduce", 2, 0, "min"), operands), Rows({{1, -2}, {1, -2}}));
  EXPECT_EQ(results(attrs_of("all_reduce", 2, 0, "avg"), operands), Rows({{2, 1.5}, {2, 1.5}}));
}

TEST(Collective, BlocksAreGatheredScatteredAndExchangedByRank) {
  const std::vector<Tensor> operands{counted({2}, 0), counted({2}, 10)};
  EXPECT_EQ(results(attrs_of("all_gather", 2), operands), Rows({{0, 1, 10, 11}, {0, 1, 10, 11}}));
  EXPECT_EQ(results(attrs_of("reduce_scatter", 2), operands), Rows({{10}, {12}}));
  EXPECT_EQ(results(attrs_of("all_to_all", 2), operands), Rows({{0, 10}, {1, 11}}));
  EXPECT_EQ(results(attrs_of("scatter", 2, 1), operands), Rows({{10}, {11}}));
}

TEST(Collective, WhatTheRootAloneGetsIsZerosElsewhere) {
  const std::vector<Tensor> operands{counted({2}, 1), counted({2}, 10)};
  EXPECT_EQ(results(attrs_of("broadcast", 2, 1), operands), Rows({{10, 11}, {10, 11}}));
  EXPECT_EQ(results(attrs_of("reduce", 2, 1), operands), Rows({{0, 0}, {11, 13}}));
  EXPECT_EQ(results(attrs_of("gather", 2, 0), operands), Rows({{1, 2, 10, 11}, {0, 0, 0, 0}}));
}

TEST(Collective, SizesFollowTheNumberOfRanks) {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, Shape{Dim::symbol("n"), Dim(3)}});
  const auto shape = [&](const std::string& operation) {
    return graph.add(*find_op("Collective"), {x}, attrs_of(operation, 4))->output()->type.shape.text();
  };
  EXPECT_EQ(shape("all_gather"), "4*n,3");
  EXPECT_EQ(shape("all_reduce"), "n,3");
  EXPECT_EQ(shape("all_to_all"), "n,3");
  EXPECT_EQ(shape("reduce_scatter"), "floordiv(n, 4),3");
}

TEST(Collective, OneRankAloneComputesNothingButAGroupOfOne) {
  EXPECT_EQ(values_of(run_op("Collective", {counted({3})}, attrs_of("all_gather", 1))), (std::vector<double>{0, 1, 2}));
  EXPECT_THROW(run_op("Collective", {counted({4})}, attrs_of("all_reduce", 2)), Error);
  EXPECT_THROW(run_op("Collective", {counted({4})}, attrs_of("all_reduce", 0)), Error) << "never a silent copy";
}

TEST(Collective, WhatDoesNotFitIsRefused) {
  const auto refused = [](const Tensor& x, const Attrs& attrs) {
    Graph graph;
    Value* input = graph.add_input("x", x.type());
    EXPECT_THROW(graph.add(*find_op("Collective"), {input}, attrs), Error) << attrs.print();
  };
  refused(counted({3}), attrs_of("all_to_all", 2));
  refused(counted({3}), attrs_of("all_gather", 0));
  refused(counted({2}), attrs_of("scatter_all", 2));
  refused(counted({2}), attrs_of("all_reduce", 2, 0, "median"));
  refused(counted({2}), attrs_of("broadcast", 2, 2));
  refused(counted({2}), attrs_of("all_reduce", -1));
  Attrs twice = attrs_of("all_reduce", 2);
  twice.set("groups", std::vector<int64_t>{0, 1, 1, 2});
  refused(counted({2}), twice);
}

}  // namespace
}  // namespace hone
