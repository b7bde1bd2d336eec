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

void joined_probabilities(std::span<const double> decisions, std::span<const double> a, std::span<const double> b,
                          std::span<double> result, std::span<double> room) {
  const size_t classes = result.size(), square = classes * classes;
  const std::span<double> pairs = room.first(square), q = room.subspan(square, square),
                          product = room.subspan(2 * square, classes);
  for (size_t i = 0, at = 0; i < classes; ++i)
    for (size_t j = i + 1; j < classes; ++j, ++at) {
      const double p = std::clamp(1 / (1 + std::exp(decisions[at] * a[at] + b[at])), 1e-7, 1 - 1e-7);
      pairs[i * classes + j] = p;
      pairs[j * classes + i] = 1 - p;
    }
  std::fill(q.begin(), q.end(), 0.0);
  std::fill(result.begin(), result.end(), 1.0 / static_cast<double>(classes));
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = 0; j < classes; ++j) {
      if (i == j) continue;
      q[i * classes + i] += pairs[j * classes + i] * pairs[j * classes + i];
      q[i * classes + j] = -pairs[j * classes + i] * pairs[i * classes + j];
    }
  const double small = 0.005 / static_cast<double>(classes);
  for (size_t round = 0; round < std::max<size_t>(100, classes); ++round) {
    std::fill(product.begin(), product.end(), 0.0);
    double total = 0, error = 0;
    for (size_t i = 0; i < classes; ++i) {
      for (size_t j = 0; j < classes; ++j) product[i] += q[i * classes + j] * result[j];
      total += result[i] * product[i];
    }
    for (const double value : product) error = std::max(error, std::abs(value - total));
    if (error < small) break;
    for (size_t i = 0; i < classes; ++i) {
      const double step = (total - product[i]) / q[i * classes + i];
      result[i] += step;
      total = (total + step * (step * q[i * classes + i] + 2 * product[i])) / (1 + step) / (1 + step);
      for (size_t j = 0; j < classes; ++j) {
        product[j] = (product[j] + step * q[i * classes + j]) / (1 + step);
        result[j] /= 1 + step;
      }
    }
  }
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
