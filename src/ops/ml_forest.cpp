// SPDX-License-Identifier: Apache-2.0

#include "ops/ml_forest.h"

#include <algorithm>
#include <array>
#include <map>

#include "ops/support.h"

namespace hone {
namespace {

constexpr std::array<std::string_view, 7> kModes = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",   "BRANCH_GT",
                                                    "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER"};

template <size_t count>
size_t place_of(const std::array<std::string_view, count>& names, std::string_view name) {
  const auto at = std::find(names.begin(), names.end(), name);
  HONE_CHECK_AS(AttributeError, at != names.end(), "'{}' is not known to tree ensembles", name);
  return static_cast<size_t>(at - names.begin());
}

bool flag(const Attrs& attrs, std::string_view name, size_t i) {
  return attrs.has(name) && i < attrs.integers(name).size() && attrs.integers(name)[i] != 0;
}

}  // namespace

/// The form of version 5: leaves apart from branches, one target each.
Forest read_forest(const Attrs& attrs) {
  Forest forest;
  const Dims &features = attrs.integers("nodes_featureids"), &on_true = attrs.integers("nodes_truenodeids"),
             &on_false = attrs.integers("nodes_falsenodeids");
  const Tensor &modes = attrs.tensor("nodes_modes"), &splits = attrs.tensor("nodes_splits"),
               &weights = attrs.tensor("leaf_weights");
  const Dims& targets = attrs.integers("leaf_targetids");
  HONE_CHECK(features.size() == on_true.size() && features.size() == on_false.size() &&
                 modes.size() == static_cast<int64_t>(features.size()) && splits.size() == modes.size(),
             "the lists of nodes have different lengths");
  HONE_CHECK(weights.size() == static_cast<int64_t>(targets.size()), "{} leaves have {} weights", targets.size(),
             weights.size());
  int64_t member = 0;
  for (size_t i = 0; i < features.size(); ++i) {
    const int64_t test = modes.integer(static_cast<int64_t>(i));
    HONE_CHECK_AS(AttributeError, test >= 0 && test < static_cast<int64_t>(kModes.size()), "a node has the mode {}",
                  test);
    Branch branch{.test = static_cast<TreeTest>(test),
                  .feature = static_cast<size_t>(features[i]),
                  .split = static_cast<float>(splits.real(static_cast<int64_t>(i)))};
    branch.missing_goes_true = flag(attrs, "nodes_missing_value_tracks_true", i);
    branch.on_true = flag(attrs, "nodes_trueleafs", i) ? -1 - on_true[i] : on_true[i];
    branch.on_false = flag(attrs, "nodes_falseleafs", i) ? -1 - on_false[i] : on_false[i];
    if (branch.test == TreeTest::member) {  // its members end at the next NaN
      const Tensor& members = attrs.tensor("membership_values");
      for (; member < members.size() && !std::isnan(members.real(member)); ++member)
        branch.members.insert(static_cast<float>(members.real(member)));
      ++member;
    }
    forest.branches.push_back(std::move(branch));
  }
  for (size_t i = 0; i < targets.size(); ++i)
    forest.leaves.push_back({{static_cast<size_t>(targets[i]), weights.real(static_cast<int64_t>(i))}});
  forest.roots = attrs.integers("tree_roots");
  return forest;
}

std::vector<double> numbers_of(const Attrs& attrs, const std::string& name) {
  if (attrs.has(name + "_as_tensor")) return read_doubles(attrs.tensor(name + "_as_tensor"));
  return attrs.has(name) ? attrs.reals(name) : std::vector<double>();
}

/// The older form: nodes named by tree and number, leaves among them, weights in lists of their own ("target" or "class").
Forest read_named_forest(const Attrs& attrs, const std::string& kind) {
  Forest forest;
  const Dims &trees = attrs.integers("nodes_treeids"), &numbers = attrs.integers("nodes_nodeids");
  const std::vector<std::string>& modes = attrs.texts("nodes_modes");
  const std::vector<double> values = numbers_of(attrs, "nodes_values"), weights = numbers_of(attrs, kind + "_weights");
  const auto fits = [&](const char* list) { return attrs.integers(list).size() == trees.size(); };
  HONE_CHECK(numbers.size() == trees.size() && modes.size() == trees.size() && values.size() == trees.size() &&
                 fits("nodes_featureids") && fits("nodes_truenodeids") && fits("nodes_falsenodeids"),
             "the lists of nodes have different lengths");
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  int64_t branches = 0, leaves = 0;
  for (size_t i = 0; i < trees.size(); ++i)
    HONE_CHECK(places.emplace(std::pair(trees[i], numbers[i]), modes[i] == "LEAF" ? -1 - leaves++ : branches++).second,
               "tree {} has two nodes {}", trees[i], numbers[i]);
  const auto place = [&](int64_t tree, int64_t number) {
    const auto at = places.find({tree, number});
    HONE_CHECK(at != places.end(), "tree {} has no node {}", tree, number);
    return at->second;
  };
  forest.leaves.resize(static_cast<size_t>(leaves));
  std::map<int64_t, int64_t> root_of;
  for (size_t i = 0; i < trees.size(); ++i) {
    root_of.try_emplace(trees[i], place(trees[i], numbers[i]));
    if (modes[i] == "LEAF") continue;
    Branch branch{.test = static_cast<TreeTest>(place_of(kModes, modes[i])),
                  .feature = static_cast<size_t>(attrs.integers("nodes_featureids").at(i)),
                  .split = static_cast<float>(values.at(i))};
    branch.missing_goes_true = flag(attrs, "nodes_missing_value_tracks_true", i);
    branch.on_true = place(trees[i], attrs.integers("nodes_truenodeids").at(i));
    branch.on_false = place(trees[i], attrs.integers("nodes_falsenodeids").at(i));
    forest.branches.push_back(std::move(branch));
  }
  for (const auto& [tree, root] : root_of) forest.roots.push_back(root);
  const Dims &weight_trees = attrs.integers(kind + "_treeids"), &weight_nodes = attrs.integers(kind + "_nodeids"),
             &targets = attrs.integers(kind + "_ids");
  for (size_t i = 0; i < weight_trees.size(); ++i) {
    const int64_t at = place(weight_trees[i], weight_nodes.at(i));
    HONE_CHECK(at < 0, "tree {} has weights at the branch {}", weight_trees[i], weight_nodes[i]);
    forest.leaves[static_cast<size_t>(-1 - at)].emplace_back(static_cast<size_t>(targets.at(i)), weights.at(i));
  }
  return forest;
}

int64_t lone_class(const Attrs& attrs, size_t labels) {
  const Dims& ids = attrs.integers("class_ids");
  const bool one =
      labels <= 2 && !ids.empty() && std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return id == ids[0]; });
  return one ? ids[0] : -1;
}

}  // namespace hone
