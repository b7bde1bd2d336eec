// SPDX-License-Identifier: Apache-2.0
//
// Linear models and support vector machines: LinearRegressor, LinearClassifier, SVMRegressor, SVMClassifier. A row is compared with every
// vector, all at once; what comes out is a score, or, behind the kernel's function, weighted into scores of which a classifier's are one for
// each pair of classes. Vectors are kept by features, so that the sums of many stay in registers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "backends/cpu/learners/scores.h"
#include "backends/cpu/learners/vector_sums.h"
#include "backends/cpu/pointwise/block_loops.h"
#include "base/checked.h"
#include "ops/ml_scores.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cpu {
namespace {

constexpr int64_t kMostVectors = 1 << 24, kMostClasses = 256, kMostNumbers = int64_t{1} << 30;
constexpr int64_t kSmallWork = 1 << 14;  // products that are not worth waking others for

enum class Model : uint8_t { linear_regressor, linear_classifier, svm_regressor, svm_classifier };
constexpr std::array<std::string_view, 4> field_names(Model) {
  return {"LinearRegressor", "LinearClassifier", "SVMRegressor", "SVMClassifier"};
}
enum class Compare : uint8_t { linear, poly, rbf, sigmoid };
constexpr std::array<std::string_view, 4> field_names(Compare) { return {"LINEAR", "POLY", "RBF", "SIGMOID"}; }

struct VectorsCode {
  NodeCode node;
  Model model = Model::linear_regressor;
  Compare compare = Compare::linear;
  Transform transform = Transform::none;
  int64_t vectors = 1, width = 1, decisions = 1;
  double gamma = 0, offset = 0, degree = 0;
  bool one_class = false;
  std::vector<int64_t> labels;
  std::vector<double> a, b;  // of probabilities

  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("model", self.model);
    visit("compare", self.compare);
    visit("transform", self.transform);
    visit("vectors", self.vectors, 1, kMostVectors);
    visit("width", self.width, 1, kMostVectors);
    visit("decisions", self.decisions, 1, kMostClasses * kMostClasses);
    visit("gamma", self.gamma);
    visit("offset", self.offset);
    visit("degree", self.degree);
    visit("one_class", self.one_class);
    visit("labels", self.labels, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
    visit("a", self.a);
    visit("b", self.b);
  }
  bool is_svm() const { return model >= Model::svm_regressor; }
  bool classifies() const { return model == Model::linear_classifier || model == Model::svm_classifier; }
  int64_t classes() const { return static_cast<int64_t>(labels.size()); }
  int64_t room() const { return round_up(vectors, 16); }
  int64_t scores() const {
    if (model == Model::svm_classifier) return !a.empty() || classes() == 2 ? classes() : decisions;
    return model == Model::linear_classifier ? std::max<int64_t>(decisions, 2) : decisions;
  }
};

class Vectors final : public CpuKernel {
 public:
  Vectors(VectorsCode code, const BoundNode& node, const CpuInfo& info)
      : code_(std::move(code)),
        rows_(node),
        scores_(node.result(code_.classifies() ? 1 : 0)),
        sums_(vector_sums(info.isa)),
        exp_(block_loop(ExprKind::exp, Domain::f32, info.isa)),
        tanh_(block_loop(ExprKind::tanh, Domain::f32, info.isa)),
        power_(block_loop(ExprKind::power, Domain::f32, info.isa)),
        transform_(name_in_standard(code_.transform)),
        workers_(info.workers) {
    node.require(rows_.width == code_.width && scores_.type == ConcreteType{DType::f32, {rows_.count, code_.scores()}});
    const auto classes = static_cast<size_t>(code_.classes());
    if (code_.classifies()) labels_ = labels_of(node, rows_.count);
    node.require(code_.classifies() == (classes > 0) && (code_.is_svm() || code_.decisions == code_.vectors));
    if (code_.model == Model::linear_classifier)
      node.require(code_.decisions == code_.classes() || (code_.decisions == 1 && classes <= 2));
    if (code_.model == Model::svm_classifier) {
      node.require(classes >= 2 && code_.classes() * (code_.classes() - 1) / 2 == code_.decisions);
      node.require(code_.a.size() == code_.b.size() &&
                   (code_.a.empty() || static_cast<int64_t>(code_.a.size()) >= code_.decisions));
    }
    // A product of its own takes a load and a step for each part of the features, and its parts have to be added up.
    few_ = code_.compare != Compare::rbf && code_.vectors * (code_.width / 8 + 12) < code_.width * code_.room() / 8;
    // Floats of a worker: what a row gives with each vector, twice where exponents are needed; then numbers in double.
    doubles_ = code_.decisions + code_.scores() + code_.classes() * (2 * code_.classes() + 1);
    bytes_ = round_up(
        code_.room() * 2 * static_cast<int64_t>(sizeof(float)) + doubles_ * static_cast<int64_t>(sizeof(double)), 64);
  }

  bool serial() const override { return rows_.count < 2 || rows_.count * code_.vectors * code_.width < kSmallWork; }
  size_t workspace_bytes() const override { return static_cast<size_t>(workers_ * bytes_); }
  size_t prepared_bytes() const override {
    return few_ ? 0 : static_cast<size_t>(code_.width * code_.room()) * sizeof(float);
  }
  void prepare(std::span<const void* const> constants, void* to) const override {
    const auto* vectors = static_cast<const float*>(constants[0]);
    auto* panel = static_cast<float*>(to);
    std::fill_n(panel, code_.width * code_.room(), 0.0F);
    for (int64_t v = 0; v < code_.vectors; ++v)
      for (int64_t i = 0; i < code_.width; ++i) panel[i * code_.room() + v] = vectors[v * code_.width + i];
  }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(rows_.count, worker, workers);
    auto* values = reinterpret_cast<float*>(static_cast<std::byte*>(bindings.workspace) + worker * bytes_);
    auto* decisions = reinterpret_cast<double*>(values + 2 * code_.room());
    for (int64_t row = share.begin; row < share.end; ++row) {
      compare(rows_.at(row, bindings), values, bindings);
      if (code_.model == Model::linear_regressor && code_.transform == Transform::none) {
        shift(row, values, bindings);
        continue;
      }
      decide(values, decisions, bindings);
      finish(row, decisions, bindings);
    }
    if (code_.transform == Transform::softmax)
      soften(scores_.as<float>(bindings) + share.begin * code_.scores(), share.end - share.begin);
  }

 private:
  void compare(const float* x, float* values, const Bindings& bindings) const {
    if (few_) {
      const auto* vectors = static_cast<const float*>(bindings.constants[0]);
      for (int64_t v = 0; v < code_.vectors; ++v) values[v] = sums_.dot(x, vectors + v * code_.width, code_.width);
    } else {
      const auto* panel = static_cast<const float*>(bindings.constants[3]);
      const auto by = code_.compare == Compare::rbf ? sums_.distances : sums_.products;
      by(x, code_.width, panel, code_.room(), values);
    }
    if (code_.compare == Compare::linear) return;
    const auto gamma = static_cast<float>(code_.compare == Compare::rbf ? -code_.gamma : code_.gamma);
    const auto offset = static_cast<float>(code_.compare == Compare::rbf ? 0 : code_.offset);
    for (int64_t v = 0; v < code_.vectors; ++v) values[v] = values[v] * gamma + offset;
    if (code_.compare == Compare::rbf) return exp_(values, nullptr, nullptr, values, code_.vectors);
    if (code_.compare == Compare::sigmoid) return tanh_(values, nullptr, nullptr, values, code_.vectors);
    if (code_.degree == 2 || code_.degree == 3) {  // also of negative numbers
      for (int64_t v = 0; v < code_.vectors; ++v)
        values[v] = code_.degree == 2 ? values[v] * values[v] : values[v] * values[v] * values[v];
      return;
    }
    float* degrees = values + code_.room();
    std::fill_n(degrees, code_.vectors, static_cast<float>(code_.degree));
    power_(values, degrees, nullptr, values, code_.vectors);
  }

  /// All that a linear regressor does to its sums.
  void shift(int64_t row, const float* values, const Bindings& bindings) const {
    const auto* bias = static_cast<const float*>(bindings.constants[2]);
    float* to = scores_.as<float>(bindings) + row * code_.decisions;
    for (int64_t k = 0; k < code_.decisions; ++k) to[k] = values[k] + bias[k];
  }

  void decide(const float* values, double* decisions, const Bindings& bindings) const {
    const auto *weights = static_cast<const float*>(bindings.constants[1]),
               *bias = static_cast<const float*>(bindings.constants[2]);
    for (int64_t k = 0; k < code_.decisions; ++k)
      decisions[k] =
          bias[k] + (code_.is_svm() ? sums_.dot(values, weights + k * code_.vectors, code_.vectors) : values[k]);
  }

  /// Scores of rows, of which each has its largest taken off, become shares of 1: powers of many rows at once, in floats.
  void soften(float* scores, int64_t rows) const {
    constexpr int64_t kTogether = 64;
    for (int64_t first = 0; first < rows; first += kTogether) {
      float* row = scores + first * code_.scores();
      const int64_t count = std::min(kTogether, rows - first);
      exp_(row, nullptr, nullptr, row, count * code_.scores());
      for (int64_t i = 0; i < count; ++i, row += code_.scores()) {
        const double sum = std::accumulate(row, row + code_.scores(), 0.0);
        for (int64_t k = 0; k < code_.scores(); ++k) row[k] = static_cast<float>(row[k] / sum);
      }
    }
  }

  void finish(int64_t row, double* decisions, const Bindings& bindings) const {
    double* scores = decisions + code_.decisions;
    const auto count = static_cast<size_t>(code_.scores());
    const int64_t winner = code_.model == Model::svm_classifier      ? judge_pairs(decisions, scores)
                           : code_.model == Model::linear_classifier ? judge(decisions, scores)
                                                                     : (std::copy_n(decisions, count, scores), 0);
    if (code_.one_class) scores[0] = scores[0] > 0 ? 1 : -1;
    double top = 0;
    if (code_.transform == Transform::softmax) top = *std::max_element(scores, scores + count);
    else post_transform(transform_, {scores, count});
    float* to = scores_.as<float>(bindings) + row * code_.scores();
    for (size_t i = 0; i < count; ++i) to[i] = static_cast<float>(scores[i] - top);
    if (labels_) labels_->as<int64_t>(bindings)[row] = code_.labels[static_cast<size_t>(winner)];
  }

  /// Of two classes only the second may have a score.
  int64_t judge(const double* decisions, double* scores) const {
    if (code_.decisions > 1) {
      std::copy_n(decisions, code_.decisions, scores);
      return std::max_element(scores, scores + code_.decisions) - scores;
    }
    const bool both = code_.transform == Transform::none || code_.transform == Transform::logistic;
    scores[0] = both ? -decisions[0] : 0, scores[1] = decisions[0];
    return decisions[0] > 0 && code_.classes() > 1 ? 1 : 0;
  }

  /// Each pair of classes gives a vote to one of them.
  int64_t judge_pairs(const double* decisions, double* scores) const {
    const auto classes = static_cast<size_t>(code_.classes()), pairs = static_cast<size_t>(code_.decisions);
    double* votes = scores + code_.scores();
    std::fill_n(votes, classes, 0.0);
    for (size_t i = 0, at = 0; i < classes; ++i)
      for (size_t j = i + 1; j < classes; ++j, ++at) votes[decisions[at] > 0 ? i : j] += 1;
    const int64_t winner = std::max_element(votes, votes + classes) - votes;
    if (!code_.a.empty())
      joined_probabilities({decisions, pairs}, code_.a, code_.b, {scores, classes},
                           {votes, 2 * classes * classes + classes});
    else if (classes == 2) scores[0] = -decisions[0], scores[1] = decisions[0];
    else std::copy_n(decisions, pairs, scores);
    return winner;
  }

  VectorsCode code_;
  Rows rows_;
  NodeResult scores_;
  std::optional<NodeResult> labels_ = {};
  VectorSums sums_;
  BlockLoop exp_, tanh_, power_;
  std::string transform_;
  bool few_ = false;
  int64_t workers_, doubles_ = 0, bytes_ = 0;
};

std::vector<double> reals_of(const Attrs& attrs, std::string_view name) {
  return attrs.has(name) ? attrs.reals(name) : std::vector<double>();
}

/// A model as its kernel has it: vectors, what they weigh in each decision, and what is added.
struct Learned {
  VectorsCode code;
  std::vector<double> vectors, weights, bias;
};

void read_support(const Attrs& attrs, int64_t width, Learned& model) {
  VectorsCode& code = model.code;
  std::vector<double> parameters = reals_of(attrs, "kernel_params");
  parameters.resize(3, 0);
  code.compare = named<Compare>(attrs.text("kernel_type")).value_or(Compare::linear);
  code.gamma = parameters[0], code.offset = parameters[1], code.degree = parameters[2];
  const std::vector<double> coefficients = reals_of(attrs, "coefficients");
  model.vectors = reals_of(attrs, "support_vectors"), model.bias = reals_of(attrs, "rho");
  if (code.model == Model::svm_regressor) {
    code.vectors = attrs.integer("n_supports");
    code.one_class = attrs.integer("one_class") != 0;
    model.weights = coefficients;
    if (code.vectors == 0) code.vectors = 1, model.vectors = coefficients, model.weights = {1};
    if (static_cast<int64_t>(model.weights.size()) > code.vectors)
      model.weights.resize(static_cast<size_t>(std::max<int64_t>(code.vectors, 0)));
    return;
  }
  const Dims& per_class = attrs.integers("vectors_per_class");
  const size_t classes = per_class.size();
  std::vector<size_t> begin{0};
  for (const int64_t count : per_class)
    begin.push_back(begin.back() + static_cast<size_t>(std::max<int64_t>(count, 0)));
  code.vectors = static_cast<int64_t>(begin.back());
  code.decisions = static_cast<int64_t>(classes * (classes - 1) / 2);
  code.a = reals_of(attrs, "prob_a"), code.b = reals_of(attrs, "prob_b");
  if (coefficients.size() < begin.back() * (classes - 1) || width < 1) return;  // refused for it
  model.weights.assign(static_cast<size_t>(code.decisions) * begin.back(), 0);
  size_t at = 0;
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = i + 1; j < classes; ++j, ++at) {
      double* weights = model.weights.data() + at * begin.back();
      for (size_t v = begin[i]; v < begin[i + 1]; ++v) weights[v] = coefficients[(j - 1) * begin.back() + v];
      for (size_t v = begin[j]; v < begin[j + 1]; ++v) weights[v] = coefficients[i * begin.back() + v];
    }
}

Learned learned(const Node& node, int64_t width) {
  Learned model;
  const Attrs& attrs = node.attrs;
  VectorsCode& code = model.code;
  code.model = node.is(ops::linear_regressor)    ? Model::linear_regressor
               : node.is(ops::linear_classifier) ? Model::linear_classifier
               : node.is(ops::svm_regressor)     ? Model::svm_regressor
                                                 : Model::svm_classifier;
  code.width = width;
  code.transform = named<Transform>(attrs.text("post_transform")).value_or(Transform::none);
  if (code.classifies()) code.labels = ClassLabels(attrs).integers();
  if (code.is_svm()) {
    read_support(attrs, width, model);
  } else {
    model.vectors = attrs.reals("coefficients"), model.bias = reals_of(attrs, "intercepts");
    code.decisions = code.model == Model::linear_regressor
                         ? attrs.integer("targets")
                         : static_cast<int64_t>(model.vectors.size()) / std::max<int64_t>(width, 1);
    code.vectors = code.decisions;
  }
  model.bias.resize(static_cast<size_t>(std::max<int64_t>(code.decisions, 0)));
  return model;
}

std::string reason_against(const Node& node, int64_t width) {
  if (node.input(0)->type.dtype != DType::f32) return "features are not f32";
  const bool classifies = node.is(ops::linear_classifier) || node.is(ops::svm_classifier);
  if (classifies && node.output(0)->type.dtype != DType::i64) return "labels are texts";
  if (!named<Transform>(node.attrs.text("post_transform"))) return "a transform of another standard";
  const bool svm = node.is(ops::svm_regressor) || node.is(ops::svm_classifier);
  if (svm && !named<Compare>(node.attrs.text("kernel_type"))) return "a kernel of another standard";
  if (width < 1 || width > kMostVectors) return "no features, or too many";
  const Learned model = learned(node, width);
  const VectorsCode& code = model.code;
  if (code.vectors < 1 || code.vectors > kMostVectors || code.decisions < 1 ||
      code.decisions > kMostClasses * kMostClasses || code.vectors * width > kMostNumbers ||
      code.decisions * code.vectors > kMostNumbers)
    return "no vectors, or too many";
  if (static_cast<int64_t>(model.vectors.size()) != code.vectors * width) return "its vectors do not fit the features";
  if (code.is_svm() && static_cast<int64_t>(model.weights.size()) != code.decisions * code.vectors)
    return "its coefficients do not fit the vectors";
  if (code.a.size() != code.b.size() || (!code.a.empty() && static_cast<int64_t>(code.a.size()) < code.decisions))
    return "its probabilities do not fit the classes";
  if (code.classes() > kMostClasses) return "too many classes";
  if (code.model == Model::linear_classifier && code.decisions != code.classes() &&
      !(code.decisions == 1 && code.classes() <= 2))
    return "its coefficients do not fit the classes";
  return {};
}

Tensor floats(const std::vector<double>& values, Dims dims) {
  const std::vector<float> narrow(values.begin(), values.end());
  return Tensor::of<float>(std::move(dims), std::span<const float>(narrow));
}

struct VectorsFamily : NodeFamily<VectorsCode> {
  static constexpr std::string_view kName = "vectors";

  static int64_t width_of(const Problem& problem) {
    const Shape& x = problem.region.nodes()[0]->input(0)->type.shape;
    return x.rank() == 0 ? 0 : x[x.rank() - 1].value();
  }

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !(node->is(ops::linear_regressor) || node->is(ops::linear_classifier) ||
                             node->is(ops::svm_regressor) || node->is(ops::svm_classifier)))
      return;
    if (input_index(problem.symbolic, node->input(0)) < 0) return out.refuse(kName, "features are not an input");
    if (std::string reason = reason_against(*node, width_of(problem)); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }

  static Built<VectorsCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    Learned model = learned(node, width_of(problem));
    Built<VectorsCode> built;
    model.code.node = describe_node(problem, built.constants);
    const VectorsCode& code = model.code;
    built.constants = {floats(model.vectors, {code.vectors, code.width}),
                       code.is_svm() ? floats(model.weights, {code.decisions, code.vectors}) : floats({0.0}, {1, 1}),
                       floats(model.bias, {code.decisions})};
    built.code = std::move(model.code);
    return built;
  }

  static std::vector<ConstantSpec> constants(const VectorsCode& code, const KernelShapes&, const CpuInfo&) {
    HONE_CHECK(node_constants(code.node).empty(), "a kernel of vectors in the plan has operands that are constants");
    require_sizes(Dims{code.vectors, code.width});
    require_sizes(Dims{code.decisions, code.vectors});
    return {{DType::f32, {code.vectors, code.width}},
            {DType::f32, code.is_svm() ? Dims{code.decisions, code.vectors} : Dims{1, 1}},
            {DType::f32, {code.decisions}}};
  }

  static std::shared_ptr<const CpuKernel> load(const VectorsCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    return std::make_shared<Vectors>(code, BoundNode(code.node, shapes, kName), info);
  }
};

}  // namespace

const CpuTactic tactics::vectors = describe<VectorsFamily>();

}  // namespace hone::cpu
