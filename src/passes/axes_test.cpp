// SPDX-License-Identifier: Apache-2.0
#include "passes/axes.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(Axes, ComposingAPermutationWithItsInverseIsTheIdentity) {
  const Permutation p{2, 0, 3, 1};
  EXPECT_EQ(compose(p, inverse(p)), (Permutation{0, 1, 2, 3}));
}

TEST(Axes, APermutationThatMovesOnlyOnesKeepsTheBytesInOrder) {
  EXPECT_TRUE(keeps_order(Shape({1, 197, 768}), {1, 0, 2}));
  EXPECT_FALSE(keeps_order(Shape({2, 197, 768}), {1, 0, 2}));
}

TEST(Axes, ASymbolicSizeMayBeOtherThanOne) {
  EXPECT_FALSE(keeps_order(Shape({Dim::symbol("N"), 197, 768}), {1, 0, 2}));
}

TEST(Axes, SizesGroupIntoProducts) {
  const auto runs = groups(Shape({2, 3, 4, 5}), Shape({6, 20}));
  ASSERT_TRUE(runs);
  EXPECT_EQ((*runs)[0].begin, 0u);
  EXPECT_EQ((*runs)[0].end, 2u);
  EXPECT_EQ((*runs)[1].end, 4u);
  EXPECT_FALSE(groups(Shape({2, 3, 4, 5}), Shape({8, 15})));
}

TEST(Axes, SymbolicSizesGroupByTheirExpressions) {
  const Dim n = Dim::symbol("N");
  EXPECT_TRUE(groups(Shape({n, 3, 4}), Shape({n * Dim(3), 4})));
  EXPECT_FALSE(groups(Shape({n, 3, 4}), Shape({n * Dim(2), 6})));
}

TEST(Axes, OnesJoinAnyGroup) {
  EXPECT_TRUE(groups(Shape({1, 12, 1, 64}), Shape({12, 64})));
  EXPECT_TRUE(groups(Shape({12, 64}), Shape({1, 12, 64, 1})));
}

}  // namespace
}  // namespace hone
