// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace hone {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 13> kWords{{{DType::f32, "float32"},
                                                                     {DType::f16, "float16"},
                                                                     {DType::bf16, "bfloat16"},
                                                                     {DType::f64, "float64"},
                                                                     {DType::i8, "int8"},
                                                                     {DType::u8, "uint8"},
                                                                     {DType::i16, "int16"},
                                                                     {DType::u16, "uint16"},
                                                                     {DType::i32, "int32"},
                                                                     {DType::u32, "uint32"},
                                                                     {DType::i64, "int64"},
                                                                     {DType::u64, "uint64"},
                                                                     {DType::boolean, "bool"}}};
constexpr size_t kWhole = 100;  // elements that are printed in full

std::string one_value(double value) { return std::isnan(value) ? "nan" : fmt::format("{:.8g}", value); }

/// The elements of one axis and all behind it, from `at` on.
std::string nested(const std::vector<double>& numbers, const Dims& dims, size_t axis, size_t at, size_t indent) {
  if (axis == dims.size()) return one_value(numbers[at]);
  size_t stride = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i) stride *= static_cast<size_t>(dims[i]);
  const auto count = static_cast<size_t>(dims[axis]);
  const bool last = axis + 1 == dims.size(), cut = numbers.size() > kWhole && count > 6;
  std::string text = "[";
  bool first = true;
  for (size_t i = 0; i < count; ++i) {
    if (cut && i >= 3 && i < count - 3) {
      if (i == 3) text += last ? " ..." : "\n" + std::string(indent + 1, ' ') + "...";
      continue;
    }
    if (!first) text += last ? " " : "\n" + std::string(indent + 1, ' ');
    first = false;
    text += nested(numbers, dims, axis + 1, at + i * stride, indent + 1);
  }
  return text + "]";
}

}  // namespace

const Tensor* find_tensor(const TensorList& list, std::string_view name) {
  const auto found = std::ranges::find(list, name, &NamedTensor::name);
  return found == list.end() ? nullptr : &found->tensor;
}

std::string_view numpy_word(DType type) {
  for (const auto& [known, word] : kWords)
    if (known == type) return word;
  return name_of(type);
}

std::optional<DType> type_of_numpy_word(std::string_view word) {
  for (const auto& [type, known] : kWords)
    if (known == word) return type;
  return std::nullopt;
}

std::string shape_text(const Dims& dims) {
  std::vector<std::string> sizes;
  for (const int64_t size : dims) sizes.push_back(std::to_string(size));
  return fmt::format("({}{})", join(sizes, ", "), dims.size() == 1 ? "," : "");
}

std::string index_text(size_t index, const Dims& dims) {
  Dims place(dims.size());
  for (size_t axis = dims.size(); axis-- > 0;) {
    const auto size = static_cast<size_t>(std::max<int64_t>(dims[axis], 1));
    place[axis] = static_cast<int64_t>(index % size);
    index /= size;
  }
  return shape_text(place);
}

std::string metadata_text(const TensorList& list) {
  std::vector<std::string> parts;
  for (const NamedTensor& each : list)
    parts.push_back(fmt::format("{} [dtype={}, shape={}]", each.name, numpy_word(each.tensor.dtype()),
                                shape_text(each.tensor.dims())));
  return "{" + join(parts, ",\n ") + "}";
}

std::string names_text(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back("'" + name + "'");
  return "[" + join(quoted, ", ") + "]";
}

std::vector<double> doubles_of(const Tensor& tensor) {
  const DType type = tensor.dtype();
  std::vector<double> numbers(static_cast<size_t>(is_object(type) ? 0 : tensor.size()));
  if (is_small(type)) {
    const std::span<const uint8_t> codes = tensor.codes();
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = small_to_float(type, codes[i]);
    return numbers;
  }
  visit(type, [&]<typename T>() {
    const std::span<const T> data = tensor.data<T>();
    for (size_t i = 0; i < numbers.size(); ++i) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) numbers[i] = static_cast<float>(data[i]);
      else numbers[i] = static_cast<double>(data[i]);
    }
  });
  return numbers;
}

double quantile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return NAN;
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at), high = std::min(low + 1, sorted.size() - 1);
  if (low == high || sorted[low] == sorted[high]) return sorted[low];
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

Statistics statistics_of(const std::vector<double>& numbers) {
  Statistics result;
  if (numbers.empty()) return result;
  const auto count = static_cast<double>(numbers.size());
  bool broken = false;
  for (size_t i = 0; i < numbers.size(); ++i) {
    result.mean += numbers[i] / count;
    result.magnitude += std::abs(numbers[i]) / count;
    if (numbers[i] < numbers[result.least_at]) result.least_at = i;
    if (numbers[i] > numbers[result.most_at]) result.most_at = i;
    if (std::isnan(numbers[i]) && !broken) {
      broken = true;
      result.least_at = result.most_at = i;
    }
    if (broken) continue;
  }
  result.least = broken ? NAN : numbers[result.least_at];
  result.most = broken ? NAN : numbers[result.most_at];
  for (const double number : numbers) result.variance += (number - result.mean) * (number - result.mean) / count;
  result.deviation = std::sqrt(result.variance);
  if (broken) {
    result.median = result.p90 = result.p95 = result.p99 = NAN;
    return result;
  }
  std::vector<double> sorted = numbers;
  std::ranges::sort(sorted);
  result.median = quantile(sorted, 0.5);
  result.p90 = quantile(sorted, 0.9);
  result.p95 = quantile(sorted, 0.95);
  result.p99 = quantile(sorted, 0.99);
  return result;
}

std::string statistics_text(const Statistics& s, const Dims& dims) {
  return fmt::format(
      "mean={:.5g}, std-dev={:.5g}, var={:.5g}, median={:.5g}, min={:.5g} at {}, max={:.5g} at {}, "
      "avg-magnitude={:.5g}, p90={:.5g}, p95={:.5g}, p99={:.5g}",
      shown(s.mean), shown(s.deviation), shown(s.variance), shown(s.median), shown(s.least),
      index_text(s.least_at, dims), shown(s.most), index_text(s.most_at, dims), shown(s.magnitude), shown(s.p90),
      shown(s.p95), shown(s.p99));
}

std::string values_text(const std::vector<double>& numbers, const Dims& dims) {
  if (numbers.empty()) return "[]";
  return nested(numbers, dims, 0, 0, 0);
}

std::string histogram_text(const std::vector<double>& numbers) {
  constexpr size_t kBins = 10, kBar = 40;
  std::vector<double> finite;
  for (const double number : numbers)
    if (std::isfinite(number)) finite.push_back(number);
  if (finite.empty()) return "(no finite values)";
  auto [low, high] = std::ranges::minmax(finite);
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  std::array<size_t, kBins> counts{};
  for (const double number : finite)
    ++counts[std::min(kBins - 1, static_cast<size_t>((number - low) / (high - low) * kBins))];
  const size_t most = std::ranges::max(counts);
  std::vector<std::string> edges;
  size_t left = 0, right = 0;
  for (size_t at = 0; at <= kBins; ++at) {
    edges.push_back(fmt::format("{:.3g}", low + (high - low) * static_cast<double>(at) / kBins));
    left = std::max(left, edges.back().size());
    if (at > 0) right = std::max(right, edges.back().size());
  }
  std::string text = fmt::format("{:<{}}|  Num Elems | Visualization", "Bin Range", left + right + 5);
  for (size_t bin = 0; bin < kBins; ++bin)
    text += fmt::format("\n({:<{}}, {:<{}}) | {:>10} | {}", edges[bin], left, edges[bin + 1], right, counts[bin],
                        std::string(counts[bin] * kBar / most, '#'));
  return text;
}

}  // namespace hone
