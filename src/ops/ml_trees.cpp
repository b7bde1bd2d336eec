// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml: decision trees. TreeEnsemble and the older TreeEnsembleRegressor and TreeEnsembleClassifier are read into one
// Forest, whose leaves add weights to targets.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/node_error.h"
#include "ops/ml_scores.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr std::array<std::string_view, 5> kTransforms = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
constexpr std::array<std::string_view, 4> kAggregates = {"AVERAGE", "SUM", "MIN", "MAX"};
constexpr std::array<std::string_view, 7> kModes = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",   "BRANCH_GT",
                                                    "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER"};

struct Branch {
  size_t mode = 0, feature = 0;
  float split = 0;
  std::set<float> members;
  bool missing_goes_true = false;
  int64_t on_true = 0, on_false = 0;  // a branch, or -1 - leaf

  int64_t next(float x) const {
    if (std::isnan(x)) return missing_goes_true ? on_true : on_false;
    const bool tests[] = {x <= split, x<split, x >= split, x> split, x == split, x != split, members.contains(x)};
    return tests[mode] ? on_true : on_false;
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

  std::vector<double> scores(std::span<const double> row, size_t targets, std::string_view aggregate) const {
    std::vector<double> sums(targets, 0.0);
    std::vector<bool> touched(targets, false);
    for (const int64_t root : roots)
      for (const auto& [target, weight] : leaf(root, row)) {
        HONE_CHECK(target < targets, "a leaf adds to target {} of {}", target, targets);
        double& sum = sums[target];
        if (aggregate == "MIN") sum = touched[target] ? std::min(sum, weight) : weight;
        else if (aggregate == "MAX") sum = touched[target] ? std::max(sum, weight) : weight;
        else sum += weight;
        touched[target] = true;
      }
    if (aggregate == "AVERAGE")
      for (double& sum : sums) sum /= static_cast<double>(roots.size());
    return sums;
  }
};

template <size_t count>
size_t place_of(const std::array<std::string_view, count>& names, std::string_view name) {
  const auto at = std::find(names.begin(), names.end(), name);
  HONE_CHECK_AS(AttributeError, at != names.end(), "'{}' is not known to tree ensembles", name);
  return static_cast<size_t>(at - names.begin());
}

bool flag(const Attrs& attrs, std::string_view name, size_t i) {
  return attrs.has(name) && i < attrs.integers(name).size() && attrs.integers(name)[i] != 0;
}

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
    Branch branch{.mode = static_cast<size_t>(modes.integer(static_cast<int64_t>(i))),
                  .feature = static_cast<size_t>(features[i]),
                  .split = static_cast<float>(splits.real(static_cast<int64_t>(i)))};
    HONE_CHECK_AS(AttributeError, branch.mode < kModes.size(), "a node has the mode {}", branch.mode);
    branch.missing_goes_true = flag(attrs, "nodes_missing_value_tracks_true", i);
    branch.on_true = flag(attrs, "nodes_trueleafs", i) ? -1 - on_true[i] : on_true[i];
    branch.on_false = flag(attrs, "nodes_falseleafs", i) ? -1 - on_false[i] : on_false[i];
    if (branch.mode == 6) {  // its members end at the next NaN
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
    Branch branch{.mode = place_of(kModes, modes[i]),
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

// ---- TreeEnsemble, TreeEnsembleRegressor ----

void infer_trees(InferContext& context) {
  context.set(0, context.dtype(0), {row_count(context), Dim(context.attrs().integer("n_targets"))});
}
void infer_tree_regressor(InferContext& context) {
  context.set(0, DType::f32, {row_count(context), Dim(context.attrs().integer("n_targets"))});
}

void eval_forest(EvalContext& context, const Forest& forest, std::string_view aggregate, const std::string& transform,
                 DType dtype) {
  const FeatureRows x(context.input(0));
  const auto targets = static_cast<size_t>(context.attrs().integer("n_targets"));
  const std::vector<double> base = numbers_of(context.attrs(), "base_values");
  std::vector<double> out;
  for (int64_t r = 0; r < x.rows; ++r) {
    std::vector<double> scores = forest.scores(x.row(r), targets, aggregate);
    for (size_t i = 0; i < base.size() && i < targets; ++i) scores[i] += base[i];
    post_transform(transform, scores);
    out.insert(out.end(), scores.begin(), scores.end());
  }
  context.set(0, write_doubles(dtype, {x.rows, static_cast<int64_t>(targets)}, out));
}

void eval_trees(EvalContext& context) {
  const auto aggregate = static_cast<size_t>(context.attrs().integer("aggregate_function")),
             transform = static_cast<size_t>(context.attrs().integer("post_transform"));
  HONE_CHECK(aggregate < kAggregates.size() && transform < kTransforms.size(),
             "aggregate_function {} or post_transform {} is not known", aggregate, transform);
  eval_forest(context, read_forest(context.attrs()), kAggregates[aggregate], std::string(kTransforms[transform]),
              context.input(0).dtype());
}

void eval_tree_regressor(EvalContext& context) {
  eval_forest(context, read_named_forest(context.attrs(), "target"), context.attrs().text("aggregate_function"),
              context.attrs().text("post_transform"), DType::f32);
}

// ---- TreeEnsembleClassifier ----

void infer_tree_classifier(InferContext& context) {
  const ClassLabels labels(context.attrs());
  context.set(0, labels.dtype(), {row_count(context)});
  context.set(1, DType::f32, {row_count(context), Dim(static_cast<int64_t>(std::max<size_t>(labels.size(), 2)))});
}

void eval_tree_classifier(EvalContext& context) {
  const Attrs& attrs = context.attrs();
  const FeatureRows x(context.input(0));
  const ClassLabels labels(attrs);
  const Forest forest = read_named_forest(attrs, "class");
  const std::string& kind = attrs.text("post_transform");
  const std::vector<double> base = numbers_of(attrs, "base_values"), weights = numbers_of(attrs, "class_weights");
  const Dims& ids = attrs.integers("class_ids");
  // Of two classes commonly one alone has weights: a score, or a probability when no weight is negative.
  const bool one_sided =
      labels.size() <= 2 && std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return id == ids[0]; });
  const bool positive = std::all_of(weights.begin(), weights.end(), [](double weight) { return weight >= 0; });
  const size_t count = std::max<size_t>(labels.size(), 2);
  std::vector<size_t> winners;
  std::vector<double> out;
  for (int64_t r = 0; r < x.rows; ++r) {
    std::vector<double> scores = forest.scores(x.row(r), count, "SUM");
    if (one_sided) {
      double score = scores[static_cast<size_t>(ids[0])];
      if (!base.empty()) score += base.back();
      winners.push_back(score > (positive ? 0.5 : 0) && labels.size() > 1 ? 1 : 0);
      scores = positive && kind == "NONE" ? std::vector<double>{1 - score, score} : std::vector<double>{-score, score};
    } else {
      for (size_t i = 0; i < base.size() && i < count; ++i) scores[i] += base[i];
      winners.push_back(static_cast<size_t>(
          std::max_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(labels.size())) -
          scores.begin()));
    }
    post_transform(kind, scores);
    out.insert(out.end(), scores.begin(), scores.end());
  }
  context.set(0, labels.pick(winners));
  context.set(1, write_doubles(DType::f32, {x.rows, static_cast<int64_t>(count)}, out));
}

AttrSpec optional_attr(std::string_view name, AttrKind kind) { return {name, kind, std::nullopt, false, {}}; }

std::vector<AttrSpec> named_attrs(std::string_view kind_ids, std::string_view kind_nodes, std::string_view kind_trees,
                                  std::string_view kind_weights, std::string_view kind_tensor,
                                  std::vector<AttrSpec> more) {
  for (const std::string_view name : {std::string_view("nodes_treeids"), std::string_view("nodes_nodeids"),
                                      std::string_view("nodes_featureids"), std::string_view("nodes_truenodeids"),
                                      std::string_view("nodes_falsenodeids"), kind_ids, kind_nodes, kind_trees})
    more.push_back(required_attr(name, AttrKind::integers));
  more.push_back(integers_attr("nodes_missing_value_tracks_true"));
  more.push_back(required_attr("nodes_modes", AttrKind::texts));
  more.push_back(text_attr("post_transform", "NONE"));
  for (const std::string_view name : {std::string_view("base_values"), std::string_view("nodes_values"),
                                      std::string_view("nodes_hitrates"), kind_weights})
    more.push_back(optional_attr(name, AttrKind::reals));
  for (const std::string_view name :
       {std::string_view("base_values_as_tensor"), std::string_view("nodes_values_as_tensor"),
        std::string_view("nodes_hitrates_as_tensor"), kind_tensor})
    more.push_back(optional_attr(name, AttrKind::tensor));
  return more;
}

OpDef tree_op(std::string_view name, std::vector<AttrSpec> attrs, size_t outputs, void (*infer)(InferContext&),
              void (*eval)(EvalContext&)) {
  OpDef op{.name = name};
  op.attrs = std::move(attrs);
  op.outputs = outputs;
  op.infer = infer;
  op.eval = eval;
  op.onnx = {{name, 1, kEveryLater, nullptr, kDomain}};
  return op;
}

}  // namespace

const OpDef ops::tree_ensemble = tree_op(
    "TreeEnsemble",
    {integer_attr("aggregate_function", 1), required_attr("leaf_targetids", AttrKind::integers),
     required_attr("leaf_weights", AttrKind::tensor), optional_attr("membership_values", AttrKind::tensor),
     integer_attr("n_targets", 1), integers_attr("nodes_falseleafs"),
     required_attr("nodes_falsenodeids", AttrKind::integers), required_attr("nodes_featureids", AttrKind::integers),
     optional_attr("nodes_hitrates", AttrKind::tensor), integers_attr("nodes_missing_value_tracks_true"),
     required_attr("nodes_modes", AttrKind::tensor), required_attr("nodes_splits", AttrKind::tensor),
     integers_attr("nodes_trueleafs"), required_attr("nodes_truenodeids", AttrKind::integers),
     integer_attr("post_transform", 0), required_attr("tree_roots", AttrKind::integers)},
    1, infer_trees, eval_trees);
const OpDef ops::tree_ensemble_regressor =
    tree_op("TreeEnsembleRegressor",
            named_attrs("target_ids", "target_nodeids", "target_treeids", "target_weights", "target_weights_as_tensor",
                        {text_attr("aggregate_function", "SUM"), integer_attr("n_targets", 1)}),
            1, infer_tree_regressor, eval_tree_regressor);
const OpDef ops::tree_ensemble_classifier =
    tree_op("TreeEnsembleClassifier",
            named_attrs("class_ids", "class_nodeids", "class_treeids", "class_weights", "class_weights_as_tensor",
                        {integers_attr("classlabels_int64s"), optional_attr("classlabels_strings", AttrKind::texts)}),
            2, infer_tree_classifier, eval_tree_classifier);

}  // namespace hone
