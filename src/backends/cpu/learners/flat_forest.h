// SPDX-License-Identifier: Apache-2.0
//
// A forest as kernels walk it. Every test becomes "x <= split", with the results exchanged or two tests behind each other where it was
// another one. Branches stand before their children, and a leaf is a branch to itself, so that a walk needs no test of its own for it.
#pragma once

#include <optional>
#include <vector>

#include "device/tactic.h"
#include "ops/ml_forest.h"

namespace hone::cpu {

/// The numbers behind each other as a plan keeps them.
struct FlatForest {
  std::vector<int32_t>
      branches;  // kBranchWords each: split's bits, feature, on true, on false (a branch, or -1 - leaf)
  std::vector<int32_t> roots;
  std::vector<int32_t> begins{0};  // of each leaf's weights; one more at the end
  std::vector<int32_t> targets;
  std::vector<double> weights;
  int64_t features = 1;  // that are read, from the first on
};
inline constexpr int64_t kBranchWords = 4;
inline constexpr int32_t kMissingGoesTrue = 1 << 30;  // beside the feature

/// Nothing for what the reference has to refuse, and for branches with several parents.
std::optional<FlatForest> flatten(const Forest& forest, int64_t targets);

}  // namespace hone::cpu
