// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/learners/flat_forest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace hone::cpu {
namespace {

constexpr size_t kMostBranches = 1 << 26;
constexpr float kNever = std::numeric_limits<float>::quiet_NaN();

/// The largest number below: x < split is x <= below(split).
float below(float split) {
  const float infinity = std::numeric_limits<float>::infinity();
  return split == -infinity ? kNever : std::nextafter(split, -infinity);
}

class Flattener {
 public:
  Flattener(const Forest& forest, int64_t targets) : forest_(forest), visited_(forest.branches.size()) {
    for (const Leaf& leaf : forest.leaves) {
      for (const auto& [target, weight] : leaf) {
        valid_ &= static_cast<int64_t>(target) < targets;
        flat_.targets.push_back(static_cast<int32_t>(target));
        flat_.weights.push_back(weight);
      }
      flat_.begins.push_back(static_cast<int32_t>(flat_.targets.size()));
    }
    for (const int64_t root : forest.roots) flat_.roots.push_back(place(root));
  }

  std::optional<FlatForest> result() && {
    if (!valid_) return std::nullopt;
    return std::move(flat_);
  }

 private:
  struct Child {
    size_t word, branch;  // where its place is written
  };

  /// A root's branches follow it before another root comes.
  int32_t place(int64_t at) {
    if (at < 0) return leaf(at);
    if (!visit(at)) return -1;
    const int32_t here = count();
    add(forest_.branches[static_cast<size_t>(at)]);
    while (valid_ && !open_.empty()) {
      const Child child = open_.back();
      open_.pop_back();
      flat_.branches[child.word] = count();
      add(forest_.branches[child.branch]);
    }
    return here;
  }
  int32_t count() const { return static_cast<int32_t>(flat_.branches.size()) / static_cast<int32_t>(kBranchWords); }
  int32_t leaf(int64_t at) {
    valid_ &= -1 - at < static_cast<int64_t>(forest_.leaves.size());
    return static_cast<int32_t>(at);
  }
  bool visit(int64_t at) {
    const auto branch = static_cast<size_t>(at);
    valid_ = valid_ && branch < visited_.size() && !visited_[branch] && flat_.branches.size() < kMostBranches;
    if (valid_) visited_[branch] = true;
    return valid_;
  }

  /// Where a test leads: to a leaf, or to a branch whose place is known later.
  struct Result {
    bool known = false;
    int32_t place = 0;
    int64_t later = 0;
  };
  Result to(int64_t at) {
    if (at < 0) return {true, leaf(at), 0};
    return {false, 0, at};
  }
  void write(float split, const Branch& branch, bool missing, const Result& on_true, const Result& on_false) {
    if (branch.feature >= kMissingGoesTrue) valid_ = false;
    if (!valid_) return;
    flat_.features = std::max(flat_.features, static_cast<int64_t>(branch.feature) + 1);
    const size_t first = flat_.branches.size();
    flat_.branches.insert(
        flat_.branches.end(),
        {std::bit_cast<int32_t>(split), static_cast<int32_t>(branch.feature) | (missing ? kMissingGoesTrue : 0),
         on_true.place, on_false.place});
    if (!on_true.known) open_.push_back({first + 2, static_cast<size_t>(on_true.later)});
    if (!on_false.known) open_.push_back({first + 3, static_cast<size_t>(on_false.later)});
  }

  void add(const Branch& branch) {
    if (branch.test == TreeTest::eq || branch.test == TreeTest::neq || branch.test == TreeTest::member) {
      valid_ = false;
      return;
    }
    for (const int64_t child : {branch.on_true, branch.on_false})
      if (child >= 0 && !visit(child)) return;
    const bool strict = branch.test == TreeTest::lt || branch.test == TreeTest::gte;
    const bool exchanged = branch.test == TreeTest::gte || branch.test == TreeTest::gt;
    const Result on_true = to(branch.on_true), on_false = to(branch.on_false);
    write(strict ? below(branch.split) : branch.split, branch, branch.missing_goes_true != exchanged,
          exchanged ? on_false : on_true, exchanged ? on_true : on_false);
  }

  const Forest& forest_;
  std::vector<bool> visited_;
  std::vector<Child> open_;
  FlatForest flat_;
  bool valid_ = true;
};

}  // namespace

std::optional<FlatForest> flatten(const Forest& forest, int64_t targets) { return Flattener(forest, targets).result(); }

}  // namespace hone::cpu
