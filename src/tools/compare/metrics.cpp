// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "tools/companion/exit_status.h"

namespace hone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kCurvePoints = 256;

/// Not within: NaNs never are.
bool exceeds(double value, double tolerance) { return !(value <= tolerance); }

double absolute_difference(DType type, double a, double b, bool infinities_equal) {
  if (type == DType::boolean) return a == b ? 0 : 1;
  if (infinities_equal && std::isinf(a) && a == b) return 0;
  return std::abs(a - b);
}

/// Floats in ascending order are integers in ascending order: their distance counts the floats between them.
double ulp_distance(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : kInfinity;
  const auto ordered = [](float value) {
    const auto bits = std::bit_cast<int32_t>(value);
    return int64_t{bits < 0 ? std::numeric_limits<int32_t>::min() - bits : bits};
  };
  return static_cast<double>(std::abs(ordered(a) - ordered(b)));
}

/// For each absolute tolerance the largest relative error among the elements beyond it: a staircase of a few steps.
std::vector<std::pair<double, double>> tolerance_curve(const std::vector<double>& absolute,
                                                       const std::vector<double>& relative) {
  std::vector<size_t> order(absolute.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto rank = [&](size_t i) { return std::isnan(absolute[i]) ? kInfinity : absolute[i]; };
  std::ranges::sort(order, [&](size_t a, size_t b) { return rank(a) > rank(b); });
  std::vector<std::pair<double, double>> curve;
  double needed = 0;
  for (size_t at = 0; at < order.size();) {
    // With a tolerance of this element's own difference, those before it have to pass by their relative one.
    const double atol = rank(order[at]);
    if (curve.empty() || needed > curve.back().second) curve.emplace_back(atol, needed);
    else curve.back().first = atol;
    for (; at < order.size() && rank(order[at]) == atol; ++at) {
      const double error = relative[order[at]];
      needed = std::max(needed, std::isnan(error) || std::isnan(absolute[order[at]]) ? kInfinity : error);
    }
  }
  if (curve.empty() || needed > curve.back().second) curve.emplace_back(0, needed);
  else curve.back().first = 0;
  std::ranges::reverse(curve);
  // Fewer points ask for more than is needed, never for less.
  while (curve.size() > kCurvePoints)
    for (size_t i = 1; i + 1 < curve.size(); ++i) curve.erase(curve.begin() + static_cast<std::ptrdiff_t>(i));
  return curve;
}

void add_places(Verdict& verdict, const std::vector<double>& found, const std::vector<double>& expected) {
  double worst = -1;
  for (size_t i = 0; i < verdict.absolutes.size(); ++i) {
    const double error = verdict.absolutes[i];
    const bool broken = std::isnan(error);
    if ((broken && !std::isnan(worst)) || error > worst) {
      worst = error;
      verdict.worst = {i, found[i], expected[i]};
    }
    if (!exceeds(error, verdict.atol) || !exceeds(verdict.relatives[i], verdict.rtol)) continue;
    if (verdict.violations++ == 0) verdict.first = {i, found[i], expected[i]};
  }
}

void add_bits(Verdict& verdict, const Tensor& found, const Tensor& expected, const std::vector<double>& a,
              const std::vector<double>& b) {
  verdict.same_bits = found.dtype() == expected.dtype() && found.bytes().size() == expected.bytes().size() &&
                      std::memcmp(found.bytes().data(), expected.bytes().data(), found.bytes().size()) == 0;
  verdict.largest_ulp = -1;
  if (found.dtype() == DType::f32 && expected.dtype() == DType::f32) {
    verdict.largest_ulp = 0;
    for (size_t i = 0; i < a.size(); ++i)
      verdict.largest_ulp =
          std::max(verdict.largest_ulp, ulp_distance(static_cast<float>(a[i]), static_cast<float>(b[i])));
  }
  if (found.dims().size() < 3 || found.dims()[1] < 2) return;
  size_t inner = 1;
  for (size_t axis = 2; axis < found.dims().size(); ++axis) inner *= static_cast<size_t>(found.dims()[axis]);
  verdict.has_channels = inner > 0;
  if (inner > 0) verdict.worst_channel = verdict.worst.index / inner % static_cast<size_t>(found.dims()[1]);
}

double stat_of(const std::string& stat, const Statistics& statistics, const std::vector<double>& numbers, double part) {
  if (stat == "mean") return statistics.mean;
  if (stat == "median") return statistics.median;
  if (stat != "quantile") return statistics.most;
  std::vector<double> sorted = numbers;
  if (std::ranges::any_of(sorted, [](double number) { return std::isnan(number); })) return NAN;
  std::ranges::sort(sorted);
  return quantile(sorted, part);
}

void judge(Verdict& verdict, const Tensor& found, const Tensor& expected, const CompareRequest& request) {
  const std::vector<double> a = doubles_of(found), b = doubles_of(expected);
  const DType type = found.dtype();
  verdict.elements = a.size();
  for (size_t i = 0; i < a.size(); ++i) {
    const double absolute = absolute_difference(type, a[i], b[i], request.infinities_equal);
    const double size = b[i] == 0 ? std::numeric_limits<double>::epsilon() : std::abs(b[i]);
    verdict.absolutes.push_back(absolute);
    verdict.relatives.push_back(absolute == 0 ? 0 : absolute / size);
  }
  verdict.absolute = statistics_of(verdict.absolutes);
  verdict.relative = statistics_of(verdict.relatives);
  const std::string& stat = verdict.stat;
  verdict.needed_abs = stat_of(stat, verdict.absolute, verdict.absolutes, verdict.quantile);
  verdict.needed_rel = stat_of(stat, verdict.relative, verdict.relatives, verdict.quantile);
  if (a.empty()) verdict.needed_abs = verdict.needed_rel = 0;
  verdict.curve = tolerance_curve(verdict.absolutes, verdict.relatives);
  add_places(verdict, a, b);
  add_bits(verdict, found, expected, a, b);
  verdict.passed = stat == "elemwise"
                       ? verdict.violations == 0
                       : !exceeds(verdict.needed_abs, verdict.atol) || !exceeds(verdict.needed_rel, verdict.rtol);
}

/// How far each value of a row of places stands from where it stands in the other row.
void judge_indices(Verdict& verdict, const Tensor& found, const Tensor& expected) {
  const std::vector<double> a = doubles_of(found), b = doubles_of(expected);
  const size_t row = found.dims().empty() ? 1 : static_cast<size_t>(found.dims().back());
  const auto allowed = static_cast<size_t>(verdict.threshold);
  verdict.passed = true;
  for (size_t at = 0; row > 0 && at + row <= a.size(); at += row)
    for (size_t i = 0; i + std::min(allowed, row) < row; ++i) {
      size_t distance = row;
      for (size_t k = 0; k < row; ++k)
        if (b[at + k] == a[at + i]) distance = std::min(distance, k > i ? k - i : i - k);
      verdict.value = std::max(verdict.value, static_cast<double>(distance));
      if (distance > allowed) verdict.passed = false;
    }
}

double single(const std::string& metric, const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, aa = 0, bb = 0, ab = 0, most = -kInfinity;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    aa += a[i] * a[i];
    bb += b[i] * b[i];
    ab += a[i] * b[i];
    most = std::max(most, a[i]);
  }
  const double count = std::max<double>(1, static_cast<double>(a.size()));
  if (metric == "l2") return std::sqrt(difference);
  if (metric == "cosine_similarity") {
    if (aa == 0 || bb == 0) return aa == bb ? 1 : 0;
    return std::clamp(ab / (std::sqrt(aa) * std::sqrt(bb)), -1.0, 1.0);
  }
  const double error = difference / count;
  if (error == 0) return kInfinity;
  if (metric == "psnr") return 20 * std::log10(most <= 0 ? 1 : most) - 10 * std::log10(error);
  return 10 * std::log10(aa / count / error);
}

}  // namespace

double value_for(const ByName& values, const std::string& name, double otherwise) {
  if (const auto named = values.find(name); named != values.end()) return named->second;
  const auto any = values.find("");
  return any == values.end() ? otherwise : any->second;
}

std::string metric_title(const std::string& metric) {
  if (metric == "l2") return "L2 Norm";
  if (metric == "cosine_similarity") return "Cosine Similarity";
  if (metric == "psnr") return "PSNR";
  if (metric == "snr") return "SNR";
  return metric;
}

bool wants_high(const std::string& metric) { return metric != "l2"; }

bool judge_simple(const std::string& stat, double atol, double rtol, double needed_abs, double needed_rel,
                  const std::vector<std::pair<double, double>>& curve) {
  if (stat != "elemwise" || curve.empty()) return !exceeds(needed_abs, atol) || !exceeds(needed_rel, rtol);
  double needed = kInfinity;
  for (const auto& [absolute, relative] : curve)
    if (absolute <= atol) needed = relative;
  return needed <= rtol;
}

Verdict compare(const std::string& metric, const std::string& output, const Tensor& found, const Tensor& expected,
                const CompareRequest& request) {
  Verdict verdict{.output = output, .metric = metric};
  const bool strings = is_object(found.dtype()) || is_object(expected.dtype());
  if (strings) {
    verdict.passed =
        found.dtype() == DType::string && expected.dtype() == DType::string && found.strings() == expected.strings();
    if (!verdict.passed) verdict.problem = "Strings and sequences are only compared as a whole: they differ";
    return verdict;
  }
  const bool fits = request.shape_check ? found.dims() == expected.dims() : found.size() == expected.size();
  if (!fits) {
    verdict.problem = fmt::format("Shapes differ: {} and {}", shape_text(found.dims()), shape_text(expected.dims()));
    return verdict;
  }
  verdict.dims = found.dims();
  verdict.elements = static_cast<size_t>(found.size());
  if (metric == "simple") {
    const auto named = request.stat.find(output), any = request.stat.find("");
    verdict.stat = named != request.stat.end() ? named->second : any != request.stat.end() ? any->second : "elemwise";
    verdict.atol = value_for(request.atol, output, 1e-5);
    verdict.rtol = value_for(request.rtol, output, 1e-5);
    verdict.quantile = value_for(request.quantile, output, 0.99);
    judge(verdict, found, expected, request);
    return verdict;
  }
  const ByName& thresholds = metric == "indices"             ? request.index_tolerance
                             : metric == "l2"                ? request.l2
                             : metric == "cosine_similarity" ? request.cosine
                             : metric == "psnr"              ? request.psnr
                                                             : request.snr;
  verdict.threshold = value_for(thresholds, output, 0);
  if (metric == "indices") {
    judge_indices(verdict, found, expected);
    return verdict;
  }
  verdict.value = single(metric, doubles_of(found), doubles_of(expected));
  verdict.passed = wants_high(metric) ? verdict.value >= verdict.threshold : verdict.value <= verdict.threshold;
  return verdict;
}

Finiteness finiteness_of(const Tensor& tensor) {
  Finiteness result;
  if (is_object(tensor.dtype())) return result;
  for (const double number : doubles_of(tensor)) {
    result.infinities += std::isinf(number);
    result.nans += std::isnan(number);
  }
  return result;
}

Tensor top_places(const Tensor& tensor, int64_t count, int64_t axis) {
  Dims dims = tensor.dims();
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank)
    throw UsageError(
        fmt::format("--postprocess top-{}: a tensor of shape {} has no axis {}", count, shape_text(dims), axis));
  const auto at = static_cast<size_t>(axis);
  const auto length = static_cast<size_t>(dims[at]);
  const size_t kept = std::min(static_cast<size_t>(count), length);
  size_t inner = 1;
  for (size_t i = at + 1; i < dims.size(); ++i) inner *= static_cast<size_t>(dims[i]);
  const std::vector<double> numbers = doubles_of(tensor);
  dims[at] = static_cast<int64_t>(kept);
  TensorBuilder builder(DType::i64, dims);
  const size_t outer = length * inner == 0 ? 0 : numbers.size() / (length * inner);
  std::vector<size_t> order(length);
  for (size_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < inner; ++i) {
      std::iota(order.begin(), order.end(), size_t{0});
      std::ranges::stable_sort(order, std::greater(), [&](size_t k) { return numbers[(o * length + k) * inner + i]; });
      for (size_t k = 0; k < kept; ++k)
        builder.data<int64_t>()[(o * kept + k) * inner + i] = static_cast<int64_t>(order[k]);
    }
  return builder.finish();
}

}  // namespace hone
