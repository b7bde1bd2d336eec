// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml: linear models and support vector machines.
#include <algorithm>
#include <cmath>

#include "base/node_error.h"
#include "ops/ml_scores.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

constexpr std::string_view kDomain = "ai.onnx.ml";

AttrSpec optional_attr(std::string_view name, AttrKind kind) { return {name, kind, std::nullopt, false, {}}; }
std::vector<double> reals_of(const Attrs& attrs, std::string_view name) {
  return attrs.has(name) ? attrs.reals(name) : std::vector<double>();
}

// ---- Linear ----

/// One score per row of coefficients.
std::vector<double> linear_scores(const Attrs& attrs, std::span<const double> row, size_t count) {
  const std::vector<double>&weights = attrs.reals("coefficients"), bias = reals_of(attrs, "intercepts");
  HONE_CHECK(weights.size() == count * row.size(), "{} coefficients for {} scores of {} features", weights.size(),
             count, row.size());
  std::vector<double> scores;
  for (size_t s = 0; s < count; ++s) {
    double sum = s < bias.size() ? bias[s] : 0;
    for (size_t i = 0; i < row.size(); ++i) sum += weights[s * row.size() + i] * row[i];
    scores.push_back(sum);
  }
  return scores;
}

void infer_linear_regressor(InferContext& context) {
  context.set(0, DType::f32, {row_count(context), Dim(context.attrs().integer("targets"))});
}

void eval_linear_regressor(EvalContext& context) {
  const FeatureRows x(context.input(0));
  const int64_t targets = context.attrs().integer("targets");
  std::vector<double> out;
  for (int64_t r = 0; r < x.rows; ++r) {
    std::vector<double> scores = linear_scores(context.attrs(), x.row(r), static_cast<size_t>(targets));
    post_transform(context.attrs().text("post_transform"), scores);
    out.insert(out.end(), scores.begin(), scores.end());
  }
  context.set(0, write_doubles(DType::f32, {x.rows, targets}, out));
}

void infer_classifier(InferContext& context) {
  const ClassLabels labels(context.attrs());
  context.set(0, labels.dtype(), {row_count(context)});
  context.set(1, DType::f32, {row_count(context), Dim(static_cast<int64_t>(std::max<size_t>(labels.size(), 2)))});
}

void eval_linear_classifier(EvalContext& context) {
  const FeatureRows x(context.input(0));
  const ClassLabels labels(context.attrs());
  const std::string& kind = context.attrs().text("post_transform");
  const auto given = static_cast<size_t>(
      x.width == 0 ? 0 : context.attrs().reals("coefficients").size() / static_cast<size_t>(x.width));
  std::vector<size_t> winners;
  std::vector<double> out;
  for (int64_t r = 0; r < x.rows; ++r) {
    std::vector<double> scores = linear_scores(context.attrs(), x.row(r), given);
    if (given == 1) {  // of two classes only the second has a score
      const double score = scores[0];
      winners.push_back(score > 0 && labels.size() > 1 ? 1 : 0);
      scores =
          kind == "LOGISTIC" || kind == "NONE" ? std::vector<double>{-score, score} : std::vector<double>{0, score};
    } else {
      winners.push_back(static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin()));
    }
    post_transform(kind, scores);
    out.insert(out.end(), scores.begin(), scores.end());
  }
  context.set(0, labels.pick(winners));
  context.set(1, write_doubles(DType::f32, {x.rows, static_cast<int64_t>(std::max<size_t>(given, 2))}, out));
}

// ---- Support vectors ----

class SvmKernel {
 public:
  explicit SvmKernel(const Attrs& attrs)
      : kind_(attrs.text("kernel_type")), parameters_(reals_of(attrs, "kernel_params")) {
    parameters_.resize(3, 0);
  }
  double operator()(std::span<const double> a, std::span<const double> b) const {
    const double gamma = parameters_[0], offset = parameters_[1], degree = parameters_[2];
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += kind_ == "RBF" ? (a[i] - b[i]) * (a[i] - b[i]) : a[i] * b[i];
    if (kind_ == "LINEAR") return sum;
    if (kind_ == "RBF") return std::exp(-gamma * sum);
    if (kind_ == "POLY") return std::pow(gamma * sum + offset, degree);
    HONE_CHECK_AS(AttributeError, kind_ == "SIGMOID", "'{}' is no kernel of a support vector machine", kind_);
    return std::tanh(gamma * sum + offset);
  }

 private:
  std::string kind_;
  std::vector<double> parameters_;
};

void infer_svm_regressor(InferContext& context) { context.set(0, DType::f32, {row_count(context), Dim(1)}); }

void eval_svm_regressor(EvalContext& context) {
  const Attrs& attrs = context.attrs();
  const FeatureRows x(context.input(0));
  const SvmKernel kernel(attrs);
  const std::vector<double> vectors = reals_of(attrs, "support_vectors"), weights = reals_of(attrs, "coefficients"),
                            rho = reals_of(attrs, "rho");
  const auto count = static_cast<size_t>(attrs.integer("n_supports")), width = static_cast<size_t>(x.width);
  HONE_CHECK(count == 0 ? weights.size() == width : vectors.size() == count * width && weights.size() >= count,
             "the support vectors do not fit rows of {} features", width);
  std::vector<double> out;
  for (int64_t r = 0; r < x.rows; ++r) {
    double sum = rho.empty() ? 0 : rho[0];
    if (count == 0) sum += kernel(x.row(r), weights);
    for (size_t s = 0; s < count; ++s)
      sum += weights[s] * kernel(x.row(r), std::span<const double>(vectors).subspan(s * width, width));
    if (attrs.integer("one_class") != 0) sum = sum > 0 ? 1 : -1;
    post_transform(attrs.text("post_transform"), std::span(&sum, 1));
    out.push_back(sum);
  }
  context.set(0, write_doubles(DType::f32, {x.rows, 1}, out));
}

/// One decision per pair of classes; each vector belongs to a class and has a weight against every other class.
std::vector<double> pair_decisions(const Attrs& attrs, const SvmKernel& kernel, std::span<const double> row) {
  const Dims& per_class = attrs.integers("vectors_per_class");
  const std::vector<double>&vectors = attrs.reals("support_vectors"), &weights = attrs.reals("coefficients"),
        &rho = attrs.reals("rho");
  const size_t classes = per_class.size(), width = row.size();
  std::vector<size_t> begin{0};
  for (const int64_t count : per_class) {
    HONE_CHECK(count >= 0, "a class has {} support vectors", count);
    begin.push_back(begin.back() + static_cast<size_t>(count));
  }
  HONE_CHECK(vectors.size() == begin.back() * width && weights.size() >= begin.back() * (classes - 1),
             "the support vectors do not fit rows of {} features", width);
  std::vector<double> values;
  for (size_t v = 0; v < begin.back(); ++v)
    values.push_back(kernel(row, std::span<const double>(vectors).subspan(v * width, width)));
  std::vector<double> decisions;
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = i + 1; j < classes; ++j) {
      double sum = decisions.size() < rho.size() ? rho[decisions.size()] : 0;
      for (size_t v = begin[i]; v < begin[i + 1]; ++v) sum += weights[(j - 1) * begin.back() + v] * values[v];
      for (size_t v = begin[j]; v < begin[j + 1]; ++v) sum += weights[i * begin.back() + v] * values[v];
      decisions.push_back(sum);
    }
  return decisions;
}

void infer_svm_classifier(InferContext& context) {
  const ClassLabels labels(context.attrs());
  HONE_CHECK(
      context.attrs().has("vectors_per_class") && context.attrs().integers("vectors_per_class").size() == labels.size(),
      "SVMClassifier needs vectors_per_class for each label");
  const auto classes = static_cast<int64_t>(labels.size());
  const bool probabilities = context.attrs().has("prob_a") && !context.attrs().reals("prob_a").empty();
  context.set(0, labels.dtype(), {row_count(context)});
  context.set(1, DType::f32,
              {row_count(context), Dim(probabilities || classes == 2 ? classes : classes * (classes - 1) / 2)});
}

void eval_svm_classifier(EvalContext& context) {
  const Attrs& attrs = context.attrs();
  const FeatureRows x(context.input(0));
  const ClassLabels labels(attrs);
  const SvmKernel kernel(attrs);
  const size_t classes = labels.size();
  const std::vector<double> a = reals_of(attrs, "prob_a"), b = reals_of(attrs, "prob_b");
  std::vector<size_t> winners;
  std::vector<double> out;
  size_t width = 0;
  for (int64_t r = 0; r < x.rows; ++r) {
    const std::vector<double> decisions = pair_decisions(attrs, kernel, x.row(r));
    std::vector<double> votes(classes, 0.0), scores;
    for (size_t i = 0, at = 0; i < classes; ++i)
      for (size_t j = i + 1; j < classes; ++j, ++at) votes[decisions[at] > 0 ? i : j] += 1;
    if (!a.empty()) {
      HONE_CHECK(a.size() >= decisions.size() && b.size() >= decisions.size(),
                 "{} pairs of classes have {} probabilities", decisions.size(), std::min(a.size(), b.size()));
      std::vector<double> room(2 * classes * classes + classes);
      scores.resize(classes);
      joined_probabilities(decisions, a, b, scores, room);
    }
    // By votes even where there are probabilities, which may see it differently: so do libsvm and ONNX Runtime.
    winners.push_back(static_cast<size_t>(std::max_element(votes.begin(), votes.end()) - votes.begin()));
    if (a.empty()) scores = classes == 2 ? std::vector<double>{-decisions[0], decisions[0]} : decisions;
    post_transform(attrs.text("post_transform"), scores);
    width = scores.size();
    out.insert(out.end(), scores.begin(), scores.end());
  }
  context.set(0, labels.pick(winners));
  context.set(1, write_doubles(DType::f32, {x.rows, static_cast<int64_t>(width)}, out));
}

OpDef model(std::string_view name, std::vector<AttrSpec> attrs, size_t outputs, void (*infer)(InferContext&),
            void (*eval)(EvalContext&)) {
  OpDef op{.name = name};
  op.attrs = std::move(attrs);
  op.attrs.push_back(text_attr("post_transform", "NONE"));
  op.outputs = outputs;
  op.infer = infer;
  op.eval = eval;
  op.onnx = {{name, 1, kEveryLater, nullptr, kDomain}};
  return op;
}

std::vector<AttrSpec> svm_attrs(std::vector<AttrSpec> more) {
  for (const char* name : {"coefficients", "kernel_params", "rho", "support_vectors"})
    more.push_back(optional_attr(name, AttrKind::reals));
  more.push_back(text_attr("kernel_type", "LINEAR"));
  return more;
}

}  // namespace

const OpDef ops::linear_regressor = model("LinearRegressor",
                                          {required_attr("coefficients", AttrKind::reals),
                                           optional_attr("intercepts", AttrKind::reals), integer_attr("targets", 1)},
                                          1, infer_linear_regressor, eval_linear_regressor);
const OpDef ops::linear_classifier =
    model("LinearClassifier",
          {required_attr("coefficients", AttrKind::reals), optional_attr("intercepts", AttrKind::reals),
           integers_attr("classlabels_ints"), optional_attr("classlabels_strings", AttrKind::texts),
           integer_attr("multi_class", 0)},
          2, infer_classifier, eval_linear_classifier);
const OpDef ops::svm_regressor =
    model("SVMRegressor", svm_attrs({integer_attr("n_supports", 0), integer_attr("one_class", 0)}), 1,
          infer_svm_regressor, eval_svm_regressor);
const OpDef ops::svm_classifier =
    model("SVMClassifier",
          svm_attrs({integers_attr("classlabels_ints"), optional_attr("classlabels_strings", AttrKind::texts),
                     integers_attr("vectors_per_class"), optional_attr("prob_a", AttrKind::reals),
                     optional_attr("prob_b", AttrKind::reals)}),
          2, infer_svm_classifier, eval_svm_classifier);

}  // namespace hone
