// SPDX-License-Identifier: Apache-2.0
#include "ops/ml_scores.h"

#include <algorithm>
#include <cmath>

#include "base/node_error.h"
#include "ops/support.h"

namespace hone {
namespace {

/// The inverse of the error function, by Winitzki's approximation, as the standard's models were trained with.
double inverse_erf(double x) {
  const double a = 0.147, logarithm = std::log((1 - x) * (1 + x)), half = 2 / (3.14159 * a) + logarithm / 2;
  return (x < 0 ? -1 : 1) * std::sqrt(std::sqrt(half * half - logarithm / a) - half);
}

}  // namespace

void post_transform(const std::string& kind, std::span<double> scores) {
  if (kind == "NONE" || scores.empty()) return;
  if (kind == "LOGISTIC") {
    for (double& score : scores) score = 1 / (1 + std::exp(-score));
    return;
  }
  if (kind == "PROBIT") {
    for (double& score : scores) score = std::sqrt(2.0) * inverse_erf(2 * score - 1);
    return;
  }
  HONE_CHECK_AS(AttributeError, kind == "SOFTMAX" || kind == "SOFTMAX_ZERO", "'{}' is no post_transform", kind);
  const double top = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) {
    const bool stays_zero = kind == "SOFTMAX_ZERO" && std::abs(score) <= 1e-7;
    score = stays_zero ? 0 : std::exp(score - top);
    total += score;
  }
  for (double& score : scores) score = total == 0 ? 0 : score / total;
}

ClassLabels::ClassLabels(const Attrs& attrs) {
  for (const char* name : {"classlabels_ints", "classlabels_int64s"})
    if (attrs.has(name) && !attrs.integers(name).empty()) integers_ = attrs.integers(name);
  if (attrs.has("classlabels_strings")) strings_ = attrs.texts("classlabels_strings");
  HONE_CHECK(integers_.empty() != strings_.empty(), "a classifier needs integers or strings as labels");
}

Tensor ClassLabels::pick(const std::vector<size_t>& classes) const {
  const Dims dims{static_cast<int64_t>(classes.size())};
  if (!strings_.empty()) {
    std::vector<std::string> out;
    for (const size_t c : classes) out.push_back(strings_.at(c));
    return Tensor::of_strings(dims, std::move(out));
  }
  std::vector<int64_t> out;
  for (const size_t c : classes) out.push_back(integers_.at(c));
  return Tensor::of<int64_t>(dims, std::span<const int64_t>(out));
}

FeatureRows::FeatureRows(const Tensor& x) : values(read_doubles(x)), rows(x.dims().size() < 2 ? 1 : x.dims()[0]) {
  width = rows == 0 ? 0 : x.size() / rows;
}

Dim row_count(const InferContext& context) {
  HONE_CHECK(context.rank(0) == 1 || context.rank(0) == 2, "{} reads [C] or [N,C], not rank {}",
             context.node().op_name(), context.rank(0));
  return context.rank(0) == 2 ? context.shape(0)[0] : Dim(1);
}

}  // namespace hone
