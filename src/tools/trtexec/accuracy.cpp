// SPDX-License-Identifier: Apache-2.0
#include "tools/trtexec/accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone {
namespace {

/// The distance of one pair: 0 where both are the same, infinities and NaN included; infinite where only one is NaN.
double distance(double a, double r) {
  if (a == r || (std::isnan(a) && std::isnan(r))) return 0;
  const double difference = std::abs(a - r);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

double cosine_loss(std::span<const double> found, std::span<const double> reference) {
  double product = 0, norm_found = 0, norm_reference = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    product += found[i] * reference[i];
    norm_found += found[i] * found[i];
    norm_reference += reference[i] * reference[i];
  }
  if (norm_found == 0 && norm_reference == 0) return 0;
  const double loss = 1 - product / std::sqrt(norm_found * norm_reference);
  return std::isnan(loss) ? 1 : loss;
}

}  // namespace

double accuracy_loss(const AccuracyOptions& options, std::span<const double> found, std::span<const double> reference) {
  if (found.empty()) return 0;
  if (options.algorithm == "cos") return cosine_loss(found, reference);
  double sum = 0, largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double d = distance(found[i], reference[i]);
    largest = std::max(largest, d);
    if (options.algorithm == "l0") sum += d > options.atol + options.rtol * std::abs(reference[i]) ? 1 : 0;
    else sum += options.algorithm == "l2" ? d * d : d;
  }
  return options.algorithm == "lInf" ? largest : sum / static_cast<double>(found.size());
}

std::string_view accuracy_label(std::string_view algorithm) {
  if (algorithm == "l0") return "L0";
  if (algorithm == "l1") return "L1";
  if (algorithm == "l2") return "L2";
  return algorithm == "lInf" ? "LInf" : "CosineSimilarity";
}

}  // namespace hone
