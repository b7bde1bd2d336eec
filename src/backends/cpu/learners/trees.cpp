// SPDX-License-Identifier: Apache-2.0
//
// Ensembles of trees: TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier. A walk down a tree waits for one load after the other,
// so several are made side by side: of one tree with several rows, or of one row down several trees. Sums are taken in double and in the
// order of the trees, whoever takes them. What comes from a plan is brought inside its bounds when it is made ready.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backends/cpu/learners/flat_forest.h"
#include "backends/cpu/learners/scores.h"
#include "base/checked.h"
#include "ops/ml_scores.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cpu {
namespace {

constexpr int64_t kTogether = 8;  // walks
constexpr int64_t kRows = 64;     // whose sums are held together: a tree stays in the nearest cache for them
constexpr int64_t kMostTargets = 1 << 12;
constexpr int64_t kMostNumbers = (int64_t{1} << 31) - 2;

enum class Aggregate : uint8_t { average, sum, min, max };
constexpr std::array<std::string_view, 4> field_names(Aggregate) { return {"AVERAGE", "SUM", "MIN", "MAX"}; }

struct TreesCode {
  NodeCode node;
  int64_t branches = 0, leaves = 1, pairs = 0, trees = 0, features = 1, targets = 1;
  Aggregate aggregate = Aggregate::sum;
  Transform transform = Transform::none;
  std::vector<double> base;     // of targets, from the first on
  std::vector<int64_t> labels;  // of a classifier
  int64_t lone = -1;            // of two classes the one that has weights
  bool probabilities = false;   // no weight of it is negative
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("branches", self.branches, 0, kMostNumbers);
    visit("leaves", self.leaves, 1, kMostNumbers);
    visit("pairs", self.pairs, 0, kMostNumbers);
    visit("trees", self.trees, 0, kMostNumbers);
    visit("features", self.features, 1, kMissingGoesTrue);
    visit("targets", self.targets, 1, kMostTargets);
    visit("aggregate", self.aggregate);
    visit("transform", self.transform);
    visit("base", self.base);
    visit("labels", self.labels, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
    visit("lone", self.lone, -1, kMostTargets - 1);
    visit("probabilities", self.probabilities);
  }
};

struct FlatBranch {
  float split;
  int32_t feature;
  int32_t next[2];  // where it is true, and where not: branches; a leaf's lead to itself
};
struct Pair {
  double weight;
  int64_t target;
};

/// The forest as it is walked; leaves stand behind the branches.
struct Walked {
  const Pair* pairs;
  const FlatBranch* branches;
  const int32_t *roots, *begins;
};

class Trees final : public CpuKernel {
 public:
  Trees(TreesCode code, const BoundNode& node, int workers)
      : code_(std::move(code)),
        rows_(node),
        scores_(node.result(code_.labels.empty() ? 0 : 1)),
        workers_(workers),
        transform_(name_in_standard(code_.transform)) {
    node.require(rows_.width >= code_.features && code_.lone < code_.targets &&
                 scores_.type == ConcreteType{DType::f32, {rows_.count, code_.targets}});
    if (code_.labels.empty()) return;
    node.require(static_cast<int64_t>(code_.labels.size()) <= code_.targets && (code_.lone < 0 || code_.targets == 2));
    labels_ = labels_of(node, rows_.count);
  }

  bool serial() const override { return rows_.count < 2 || rows_.count * code_.trees < 512; }
  size_t workspace_bytes() const override {
    return static_cast<size_t>(workers_ * kRows * code_.targets) * sizeof(double);
  }

  size_t prepared_bytes() const override {
    return static_cast<size_t>(code_.pairs) * sizeof(Pair) +
           static_cast<size_t>(code_.branches + code_.leaves) * sizeof(FlatBranch) +
           static_cast<size_t>(code_.trees + code_.leaves + 1) * sizeof(int32_t);
  }
  void prepare(std::span<const void* const> constants, void* to) const override {
    const auto* words = static_cast<const int32_t*>(constants[0]);
    const auto *roots = static_cast<const int32_t*>(constants[1]), *begins = static_cast<const int32_t*>(constants[2]),
               *targets = static_cast<const int32_t*>(constants[3]);
    const auto* weights = static_cast<const double*>(constants[4]);
    const Walked walked = walked_of(to);
    auto* pairs = const_cast<Pair*>(walked.pairs);
    for (int64_t i = 0; i < code_.pairs; ++i)
      pairs[i] = {weights[i], std::clamp<int64_t>(targets[i], 0, code_.targets - 1)};
    auto* branches = const_cast<FlatBranch*>(walked.branches);
    for (int64_t i = 0; i < code_.branches; ++i) {
      const int32_t* branch = words + i * kBranchWords;
      const int32_t feature = branch[1] & (kMissingGoesTrue - 1);
      branches[i] = {
          std::bit_cast<float>(branch[0]),
          static_cast<int32_t>(std::min<int64_t>(feature, code_.features - 1)) | (branch[1] & kMissingGoesTrue),
          {inside(branch[2], i), inside(branch[3], i)}};
    }
    for (int64_t i = 0; i < code_.leaves; ++i) {
      const auto self = static_cast<int32_t>(code_.branches + i);
      branches[self] = {0, 0, {self, self}};
    }
    auto *own_roots = const_cast<int32_t*>(walked.roots), *own_begins = const_cast<int32_t*>(walked.begins);
    for (int64_t i = 0; i < code_.trees; ++i) own_roots[i] = inside(roots[i], -1);
    for (int64_t i = 0, least = 0; i <= code_.leaves; ++i) {
      least = std::clamp<int64_t>(begins[i], least, code_.pairs);
      own_begins[i] = static_cast<int32_t>(least);
    }
  }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(rows_.count, worker, workers);
    const Walked forest = walked_of(const_cast<void*>(bindings.constants[5]));
    double* sums = static_cast<double*>(bindings.workspace) + worker * kRows * code_.targets;
    for (int64_t row = share.begin; row < share.end; row += kRows) {
      const int64_t count = std::min(kRows, share.end - row);
      add_up(forest, rows_.at(row, bindings), count, sums);
      for (int64_t i = 0; i < count; ++i) finish(row + i, sums + i * code_.targets, bindings);
    }
  }

 private:
  /// Where a plan's branch or leaf stands, behind branch `behind`; what cannot be is the first leaf.
  int32_t inside(int32_t place, int64_t behind) const {
    if (place >= 0) return static_cast<int32_t>(place > behind && place < code_.branches ? place : code_.branches);
    const int64_t leaf = -1 - static_cast<int64_t>(place);
    return static_cast<int32_t>(code_.branches + std::min(leaf, code_.leaves - 1));
  }

  Walked walked_of(void* prepared) const {
    auto* pairs = static_cast<Pair*>(prepared);
    auto* branches = reinterpret_cast<FlatBranch*>(pairs + code_.pairs);
    auto* roots = reinterpret_cast<int32_t*>(branches + code_.branches + code_.leaves);
    return {pairs, branches, roots, roots + code_.trees};
  }

  /// Walks are numbered rows first, then trees.
  void add_up(const Walked& forest, const float* x, int64_t rows, double* sums) const {
    const bool adds = code_.aggregate == Aggregate::sum || code_.aggregate == Aggregate::average;
    std::fill(sums, sums + rows * code_.targets, adds ? 0.0 : std::numeric_limits<double>::quiet_NaN());
    int64_t tree = 0, row = 0;
    for (int64_t left = rows * code_.trees; left > 0; left -= kTogether) {
      std::array<int32_t, kTogether> at = {};
      std::array<const float*, kTogether> features = {};
      std::array<double*, kTogether> to = {};
      const auto count = static_cast<size_t>(std::min(left, kTogether));
      for (size_t i = 0; i < kTogether; ++i) {
        const bool more = i < count;
        at[i] = more ? forest.roots[tree] : static_cast<int32_t>(code_.branches);
        features[i] = x + (more ? row : 0) * rows_.width;
        to[i] = sums + row * code_.targets;
        if (more && ++row == rows) row = 0, ++tree;
      }
      walk(forest.branches, features, at);
      for (size_t i = 0; i < count; ++i) add(forest, at[i], to[i]);
    }
  }

  void walk(const FlatBranch* branches, const std::array<const float*, kTogether>& x,
            std::array<int32_t, kTogether>& at) const {
    const auto first_leaf = static_cast<int32_t>(code_.branches);
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t i = 0; i < kTogether; ++i) {
        const FlatBranch& branch = branches[at[i]];
        const float value = x[i][branch.feature & (kMissingGoesTrue - 1)];
        const bool missing = (value != value) & (branch.feature >= kMissingGoesTrue);
        at[i] = branch.next[(value <= branch.split) | missing ? 0 : 1];  // half of the guesses would be wrong
        goes_on |= at[i] < first_leaf;
      }
    }
  }

  void add(const Walked& forest, int32_t at, double* sums) const {
    const int64_t leaf = at - code_.branches;
    for (int64_t i = forest.begins[leaf]; i < forest.begins[leaf + 1]; ++i) {
      const Pair& pair = forest.pairs[i];
      double& sum = sums[pair.target];
      if (code_.aggregate == Aggregate::min) sum = std::fmin(sum, pair.weight);
      else if (code_.aggregate == Aggregate::max) sum = std::fmax(sum, pair.weight);
      else sum += pair.weight;
    }
  }

  void finish(int64_t row, double* sums, const Bindings& bindings) const {
    const auto count = static_cast<size_t>(code_.targets);
    if (code_.aggregate == Aggregate::min || code_.aggregate == Aggregate::max)
      for (size_t i = 0; i < count; ++i) sums[i] = std::isnan(sums[i]) ? 0 : sums[i];
    if (code_.aggregate == Aggregate::average)
      for (size_t i = 0; i < count; ++i) sums[i] /= static_cast<double>(code_.trees);
    const int64_t winner = code_.lone >= 0 ? judge(sums) : add_base(sums);
    post_transform(transform_, {sums, count});
    float* scores = scores_.as<float>(bindings) + row * code_.targets;
    for (size_t i = 0; i < count; ++i) scores[i] = static_cast<float>(sums[i]);
    if (labels_) labels_->as<int64_t>(bindings)[row] = code_.labels[static_cast<size_t>(winner)];
  }

  /// Of two classes one alone has weights: a score, or a probability.
  int64_t judge(double* sums) const {
    double score = sums[code_.lone];
    if (!code_.base.empty()) score += code_.base.back();
    sums[0] = code_.probabilities && code_.transform == Transform::none ? 1 - score : -score;
    sums[1] = score;
    return score > (code_.probabilities ? 0.5 : 0) && code_.labels.size() > 1 ? 1 : 0;
  }
  int64_t add_base(double* sums) const {
    for (size_t i = 0; i < code_.base.size() && i < static_cast<size_t>(code_.targets); ++i) sums[i] += code_.base[i];
    return code_.labels.empty() ? 0 : std::max_element(sums, sums + code_.labels.size()) - sums;
  }

  TreesCode code_;
  Rows rows_;
  NodeResult scores_;
  std::optional<NodeResult> labels_ = {};
  int workers_;
  std::string transform_;
};

template <typename E>
E numbered(int64_t number) {
  return static_cast<E>(std::clamp<int64_t>(number, 0, static_cast<int64_t>(field_names(E{}).size()) - 1));
}

/// What a node says beside its trees. Throws Error where the reference would.
TreesCode described(const Node& node) {
  const Attrs& attrs = node.attrs;
  TreesCode code;
  if (node.is(ops::tree_ensemble)) {
    code.aggregate = numbered<Aggregate>(attrs.integer("aggregate_function"));
    code.transform = numbered<Transform>(attrs.integer("post_transform"));
    code.targets = attrs.integer("n_targets");
    return code;
  }
  code.transform = named<Transform>(attrs.text("post_transform")).value_or(Transform::none);
  code.base = numbers_of(attrs, "base_values");
  if (node.is(ops::tree_ensemble_regressor)) {
    code.aggregate = named<Aggregate>(attrs.text("aggregate_function")).value_or(Aggregate::sum);
    code.targets = attrs.integer("n_targets");
    return code;
  }
  code.labels = attrs.integers("classlabels_int64s");
  code.targets = std::max<int64_t>(static_cast<int64_t>(code.labels.size()), 2);
  code.lone = lone_class(attrs, code.labels.size());
  const std::vector<double> weights = numbers_of(attrs, "class_weights");
  code.probabilities = std::ranges::all_of(weights, [](double weight) { return weight >= 0; });
  return code;
}

Forest forest_of(const Node& node) {
  if (node.is(ops::tree_ensemble)) return read_forest(node.attrs);
  return read_named_forest(node.attrs, node.is(ops::tree_ensemble_classifier) ? "class" : "target");
}

bool is_known(const Node& node) {
  if (node.is(ops::tree_ensemble))
    return node.attrs.integer("aggregate_function") >= 0 && node.attrs.integer("aggregate_function") < 4 &&
           node.attrs.integer("post_transform") >= 0 && node.attrs.integer("post_transform") < 5;
  return named<Transform>(node.attrs.text("post_transform")) &&
         (!node.is(ops::tree_ensemble_regressor) || named<Aggregate>(node.attrs.text("aggregate_function")));
}

std::string reason_against(const Node& node, int64_t width) {
  if (node.input(0)->type.dtype != DType::f32) return "features are not f32";
  if (node.is(ops::tree_ensemble_classifier) && node.output(0)->type.dtype != DType::i64) return "labels are texts";
  if (!is_known(node)) return "an attribute of another standard";
  const TreesCode code = described(node);
  if (code.targets < 1 || code.targets > kMostTargets) return "too many targets, or none";
  const std::optional<FlatForest> flat = flatten(forest_of(node), code.targets);
  if (!flat) return "its trees test for equality, or are none";
  if (flat->features > width) return "a tree reads a feature that is not there";
  return {};
}

template <typename T>
Tensor listed(std::vector<T> values, std::initializer_list<int64_t> behind = {}) {
  int64_t unit = 1;
  for (const int64_t size : behind) unit *= size;
  Dims dims{static_cast<int64_t>(values.size()) / unit};
  dims.insert(dims.end(), behind);
  return Tensor::of<T>(std::move(dims), std::span<const T>(values));
}

struct TreesFamily : NodeFamily<TreesCode> {
  static constexpr std::string_view kName = "trees";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !(node->is(ops::tree_ensemble) || node->is(ops::tree_ensemble_regressor) ||
                             node->is(ops::tree_ensemble_classifier)))
      return;
    if (input_index(problem.symbolic, node->input(0)) < 0) return out.refuse(kName, "features are not an input");
    const Shape& x = problem.region.nodes()[0]->input(0)->type.shape;
    if (std::string reason = reason_against(*node, x[x.rank() - 1].value()); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }

  static Built<TreesCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<TreesCode> built;
    built.code = described(node);
    built.code.node = describe_node(problem, built.constants);
    std::optional<FlatForest> flat = flatten(forest_of(node), built.code.targets);
    HONE_ASSERT(flat.has_value(), "a forest that was offered cannot be flattened");
    TreesCode& code = built.code;
    code.branches = static_cast<int64_t>(flat->branches.size()) / kBranchWords;
    code.leaves = std::max<int64_t>(static_cast<int64_t>(flat->begins.size()) - 1, 1);
    flat->begins.resize(static_cast<size_t>(code.leaves) + 1, 0);
    code.pairs = static_cast<int64_t>(flat->weights.size());
    code.trees = static_cast<int64_t>(flat->roots.size());
    code.features = flat->features;
    built.constants = {listed(std::move(flat->branches), {kBranchWords}), listed(std::move(flat->roots)),
                       listed(std::move(flat->begins)), listed(std::move(flat->targets)),
                       listed(std::move(flat->weights))};
    return built;
  }

  static std::vector<ConstantSpec> constants(const TreesCode& code, const KernelShapes&, const CpuInfo&) {
    HONE_CHECK(node_constants(code.node).empty(), "a kernel of trees in the plan has operands that are constants");
    return {{DType::i32, {code.branches, kBranchWords}},
            {DType::i32, {code.trees}},
            {DType::i32, {code.leaves + 1}},
            {DType::i32, {code.pairs}},
            {DType::f64, {code.pairs}}};
  }

  static std::shared_ptr<const CpuKernel> load(const TreesCode& code, const KernelShapes& shapes, const CpuInfo& info) {
    return std::make_shared<Trees>(code, BoundNode(code.node, shapes, kName), info.workers);
  }
};

}  // namespace

const CpuTactic tactics::trees = describe<TreesFamily>();

}  // namespace hone::cpu
