// SPDX-License-Identifier: Apache-2.0
#include "tools/view/weight_facts.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/utf8.h"
#include "edit/values.h"

namespace hone {
namespace {

constexpr int64_t kMostLookedAt = 1 << 18, kFirstValues = 24;
constexpr size_t kBins = 30;

double element(const Tensor& tensor, int64_t i) {
  if (is_small(tensor.dtype())) return small_to_float(tensor.dtype(), tensor.codes()[static_cast<size_t>(i)]);
  return is_float(tensor.dtype()) ? tensor.real(i) : static_cast<double>(tensor.integer(i));
}

/// Evenly spread.
std::vector<double> numbers_of(const Tensor& tensor) {
  const int64_t size = tensor.size(), step = std::max<int64_t>(1, (size + kMostLookedAt - 1) / kMostLookedAt);
  std::vector<double> numbers;
  for (int64_t i = 0; i < size; i += step) numbers.push_back(element(tensor, i));
  return numbers;
}

void add_figures(const std::vector<double>& numbers, ViewWeight& facts) {
  std::vector<double> finite;
  std::ranges::copy_if(numbers, std::back_inserter(finite), [](double value) { return std::isfinite(value); });
  facts.looked_at = static_cast<int64_t>(numbers.size());
  facts.not_finite = facts.looked_at - static_cast<int64_t>(finite.size());
  facts.zeros = std::ranges::count(finite, 0.0);
  if (finite.empty()) return;
  const auto [least, most] = std::ranges::minmax(finite);
  facts.least = least, facts.most = most;
  const auto count = static_cast<double>(finite.size());
  for (const double value : finite) facts.mean += value / count;
  double squares = 0;
  for (const double value : finite) squares += (value - facts.mean) * (value - facts.mean) / count;
  facts.deviation = std::sqrt(squares);
  if (most <= least || !std::isfinite(most - least)) return;
  facts.bins.assign(kBins, 0);
  for (const double value : finite)
    ++facts.bins[std::min(kBins - 1,
                          static_cast<size_t>((value - least) / (most - least) * static_cast<double>(kBins)))];
}

std::string first_values(const Tensor& tensor) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < std::min(tensor.size(), kFirstValues); ++i)
    texts.push_back(exact(static_cast<float>(element(tensor, i))));
  return join(texts, " ") + (tensor.size() > kFirstValues ? " …" : "");
}

}  // namespace

ViewWeight weight_facts(const edit::Model& model, const edit::Weight& weight) {
  std::vector<std::string> sizes;
  for (const int64_t size : weight.dims) sizes.push_back(std::to_string(size));
  ViewWeight facts{.name = valid_utf8(weight.name),
                   .type = element_word(edit::numpy_name(weight.type)).name,
                   .shape = join(sizes, "×"),
                   .count = edit::element_count(weight),
                   .bytes = edit::element_bytes(weight)};
  if (!edit::has_elements(weight)) return facts;
  try {
    const Tensor tensor = edit::tensor_of(model, weight);
    if (tensor.dtype() == DType::string || is_object(tensor.dtype()) || tensor.size() == 0) return facts;
    add_figures(numbers_of(tensor), facts);
    facts.values = first_values(tensor);
  } catch (
      const Error&) {  // in a file that is missing, or of a type that no tensor has: the page says that values are not there
    facts.looked_at = 0;
  }
  return facts;
}

}  // namespace hone
