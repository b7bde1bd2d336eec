// SPDX-License-Identifier: Apache-2.0
//
// What the models of ai.onnx.ml do with the scores of a row at the end, and how classifiers name the winner.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/op.h"

namespace hone {

/// NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, in place.
void post_transform(const std::string& kind, std::span<double> scores);

/// Platt's probabilities of pairs of classes, 1 / (1 + e^(a decision + b)), joined by the iteration of Wu, Lin and Weng to one for each
/// class. `room` holds 2 c^2 + c numbers, c classes.
void joined_probabilities(std::span<const double> decisions, std::span<const double> a, std::span<const double> b,
                          std::span<double> result, std::span<double> room);

/// classlabels_ints, classlabels_int64s or classlabels_strings.
class ClassLabels {
 public:
  explicit ClassLabels(const Attrs& attrs);
  const std::vector<int64_t>& integers() const { return integers_; }
  size_t size() const { return strings_.empty() ? integers_.size() : strings_.size(); }
  DType dtype() const { return strings_.empty() ? DType::i64 : DType::string; }
  /// The labels of these classes, as a tensor of rank 1.
  Tensor pick(const std::vector<size_t>& classes) const;

 private:
  std::vector<int64_t> integers_;
  std::vector<std::string> strings_;
};

/// A row of features: operand 0 as [rows, width].
struct FeatureRows {
  explicit FeatureRows(const Tensor& x);
  std::span<const double> row(int64_t i) const {
    return std::span<const double>(values).subspan(static_cast<size_t>(i * width), static_cast<size_t>(width));
  }
  std::vector<double> values;
  int64_t rows, width;
};
Dim row_count(const InferContext& context);

}  // namespace hone
