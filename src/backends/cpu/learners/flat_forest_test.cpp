// SPDX-License-Identifier: Apache-2.0
//
// Every test of a tree in the form that kernels walk, at the numbers where it turns.
#include "backends/cpu/learners/flat_forest.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace hone::cpu {
namespace {

Forest one_branch(TreeTest test, float split, bool missing_goes_true) {
  Forest forest;
  forest.branches.push_back({.test = test,
                             .feature = 0,
                             .split = split,
                             .missing_goes_true = missing_goes_true,
                             .on_true = -1,
                             .on_false = -2});
  forest.leaves = {{{0, 1.0}}, {{0, 2.0}}};
  forest.roots = {0};
  return forest;
}

/// As a kernel walks it; -1 - leaf.
int32_t walked(const FlatForest& flat, float x) {
  int32_t at = flat.roots[0];
  while (at >= 0) {
    const int32_t* branch = flat.branches.data() + at * kBranchWords;
    const bool missing = std::isnan(x) && (branch[1] & kMissingGoesTrue) != 0;
    at = x <= std::bit_cast<float>(branch[0]) || missing ? branch[2] : branch[3];
  }
  return at;
}

TEST(FlatForest, GoesWhereEveryTestGoes) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const TreeTest test : {TreeTest::leq, TreeTest::lt, TreeTest::gte, TreeTest::gt})
    for (const float split : {0.25F, -3.0F, 0.0F, infinity, -infinity})
      for (const bool missing : {false, true}) {
        const Forest forest = one_branch(test, split, missing);
        const std::optional<FlatForest> flat = flatten(forest, 1);
        ASSERT_TRUE(flat.has_value());
        for (const float x : {split, std::nextafter(split, -infinity), std::nextafter(split, infinity), infinity,
                              -infinity, std::nanf(""), 0.0F, -0.0F}) {
          const int64_t expected = forest.branches[0].next(x);
          EXPECT_EQ(walked(*flat, x), expected) << "test " << static_cast<int>(test) << " of " << x << " at " << split;
        }
      }
}

TEST(FlatForest, RefusesWhatTheReferenceRefuses) {
  Forest cycle = one_branch(TreeTest::leq, 0, false);
  cycle.branches[0].on_true = 0;
  EXPECT_FALSE(flatten(cycle, 1).has_value());
  Forest outside = one_branch(TreeTest::leq, 0, false);
  outside.branches[0].on_false = 7;
  EXPECT_FALSE(flatten(outside, 1).has_value());
  Forest no_leaf = one_branch(TreeTest::leq, 0, false);
  no_leaf.branches[0].on_false = -9;
  EXPECT_FALSE(flatten(no_leaf, 1).has_value());
  Forest target = one_branch(TreeTest::leq, 0, false);
  target.leaves[1][0].first = 1;
  EXPECT_FALSE(flatten(target, 1).has_value());
}

}  // namespace
}  // namespace hone::cpu
