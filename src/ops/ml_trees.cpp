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
#include "ops/ml_forest.h"
#include "ops/ml_scores.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr std::array<std::string_view, 5> kTransforms = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
constexpr std::array<std::string_view, 4> kAggregates = {"AVERAGE", "SUM", "MIN", "MAX"};
std::vector<double> scores_of(const Forest& forest, std::span<const double> row, size_t targets,
                              std::string_view aggregate) {
  std::vector<double> sums(targets, 0.0);
  std::vector<bool> touched(targets, false);
  for (const int64_t root : forest.roots)
    for (const auto& [target, weight] : forest.leaf(root, row)) {
      HONE_CHECK(target < targets, "a leaf adds to target {} of {}", target, targets);
      double& sum = sums[target];
      if (aggregate == "MIN") sum = touched[target] ? std::min(sum, weight) : weight;
      else if (aggregate == "MAX") sum = touched[target] ? std::max(sum, weight) : weight;
      else sum += weight;
      touched[target] = true;
    }
  if (aggregate == "AVERAGE")
    for (double& sum : sums) sum /= static_cast<double>(forest.roots.size());
  return sums;
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
    std::vector<double> scores = scores_of(forest, x.row(r), targets, aggregate);
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
  // Of two classes commonly one alone has weights: a score, or a probability when no weight is negative.
  const int64_t lone = lone_class(attrs, labels.size());
  const bool positive = std::all_of(weights.begin(), weights.end(), [](double weight) { return weight >= 0; });
  const size_t count = std::max<size_t>(labels.size(), 2);
  std::vector<size_t> winners;
  std::vector<double> out;
  for (int64_t r = 0; r < x.rows; ++r) {
    std::vector<double> scores = scores_of(forest, x.row(r), count, "SUM");
    if (lone >= 0) {
      double score = scores.at(static_cast<size_t>(lone));
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
