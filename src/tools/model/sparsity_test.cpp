// SPDX-License-Identifier: Apache-2.0

#include "tools/model/sparsity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/all.h"
#include "ops/support.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> constant_of(const Graph& graph, size_t node) {
  return read_doubles(*graph.nodes()[node]->input(1)->constant);
}

TEST(Sparsity, IsFoundAlongInputChannels) {
  // Two of four along K of [K, N], but three of four along N of its twin.
  const Graph graph = parse_graph(R"((%x: f32[1,4]) {
    %w = constant f32[4,2]{1, 0, 2, 0, 0, 3, 0, 4}
    %v = constant f32[4,2]{1, 1, 2, 0, 3, 0, 0, 1}
    %a = MatMul(%x, %w) "fits"
    %b = MatMul(%x, %v) "does_not"
    %c = Gemm(%x, %w) {transA=0, transB=0, alpha=1.0, beta=1.0} "again"
    return %a, %b, %c
  })",
                                  find_op);
  std::string said;
  Logger log([&](Severity, std::string_view line) { said += std::string(line) + "\n"; });
  log.set_threshold(Severity::verbose);
  const SparseWeights found = check_sparsity(graph, log);
  EXPECT_EQ(found.all, 2u);
  EXPECT_EQ(found.fitting, 1u);
  EXPECT_THAT(said, HasSubstr("layer does_not has no 2:4 structure"));
}

TEST(Sparsity, IsForcedByKeepingTwoOfFourInputChannels) {
  Graph graph = parse_graph(R"((%x: f32[1,5,3,3], %y: f32[1,4]) {
    %w = constant f32[1,5,1,1]{1, 2, 3, 4, 5}
    %v = constant f32[2,4]{1, 2, 3, 4, 5, 6, 7, 8}
    %a = Conv(%x, %w) {kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1], dilations=[1, 1]}
    %b = Gemm(%y, %v) {transA=0, transB=1, alpha=1.0, beta=1.0}
    return %a, %b
  })",
                            find_op);
  prune(graph);
  EXPECT_THAT(constant_of(graph, 0), ElementsAre(1, 2, 0, 0, 5));
  EXPECT_THAT(constant_of(graph, 1), ElementsAre(1, 2, 0, 0, 5, 6, 0, 0));
  EXPECT_EQ(check_sparsity(graph, silent_logger()).fitting, 2u);
}

TEST(Sparsity, OfIntegersIsThatOfTheirZeroPoint) {
  Graph graph = parse_graph(R"((%y: f32[1,4]) {
    %v = constant u8[4,1]{7, 8, 9, 10}
    %s = constant f32[]{0.5}
    %z = constant u8[]{7}
    %w = DequantizeLinear(%v, %s, %z)
    %b = MatMul(%y, %w)
    return %b
  })",
                            find_op);
  EXPECT_EQ(check_sparsity(graph, silent_logger()).fitting, 0u);
  prune(graph);
  EXPECT_THAT(read_doubles(*graph.nodes()[0]->input(0)->constant), ElementsAre(7, 8, 7, 7));
  EXPECT_EQ(check_sparsity(graph, silent_logger()).fitting, 1u);
}

}  // namespace
}  // namespace hone
