// SPDX-License-Identifier: Apache-2.0
//
// Decision trees as they are, whichever operator of ai.onnx.ml they came with: branches that test a feature, and leaves that add
// weights to targets. What the reference evaluates and kernels flatten.
#pragma once

#include <cmath>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/node_error.h"
#include "ir/op.h"

namespace hone {

enum class TreeTest : uint8_t { leq, lt, gte, gt, eq, neq, member };

struct Branch {
  TreeTest test = TreeTest::leq;
  size_t feature = 0;
  float split = 0;
  std::set<float> members = {};
  bool missing_goes_true = false;
  int64_t on_true = 0, on_false = 0;  // a branch, or -1 - leaf

  int64_t next(float x) const {
    if (std::isnan(x)) return missing_goes_true ? on_true : on_false;
    const bool tests[] = {x <= split, x<split, x >= split, x> split, x == split, x != split, members.contains(x)};
    return tests[static_cast<size_t>(test)] ? on_true : on_false;
  }
};
using Leaf = std::vector<std::pair<size_t, double>>;  // target, weight

struct Forest {
  std::vector<Branch> branches;
  std::vector<Leaf> leaves;
  std::vector<int64_t> roots;  // as Branch::on_true

  const Leaf& leaf(int64_t root, std::span<const double> row) const {
    int64_t at = root;
    for (size_t steps = 0; at >= 0; ++steps) {
      HONE_CHECK(steps <= branches.size(), "a tree has a cycle");
      const Branch& branch = branches.at(static_cast<size_t>(at));
      HONE_CHECK(branch.feature < row.size(), "a tree reads feature {} of {}", branch.feature, row.size());
      at = branch.next(static_cast<float>(row[branch.feature]));
    }
    return leaves.at(static_cast<size_t>(-1 - at));
  }
};

/// TreeEnsemble.
Forest read_forest(const Attrs& attrs);
/// The older operators, whose weights stand in lists that begin with "target" or "class".
Forest read_named_forest(const Attrs& attrs, const std::string& kind);
/// A list of numbers, which may be given as a tensor.
std::vector<double> numbers_of(const Attrs& attrs, const std::string& name);
/// The class that alone has weights, where there are two at the most; -1 where more have.
int64_t lone_class(const Attrs& attrs, size_t labels);

}  // namespace hone
