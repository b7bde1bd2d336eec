// SPDX-License-Identifier: Apache-2.0
//
// Range, ConstantOfShape, Shape, Size, windows, the mel filter bank and MaxUnpool. What each computes is what its reference code does.
#include "backends/cpu/host/rules.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "base/numbers.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace hone::cpu {
namespace {

std::string none(const Node&) { return {}; }

bool is_real(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

std::string reason_against_numbers(const Node& node) {
  const DType dtype = node.output()->type.dtype;
  return is_real(dtype) ? "" : fmt::format("{} is neither f32 nor f64", name_of(dtype));
}

/// Calls `body.template operator()<T>()` for float or double.
template <typename Body>
void visit_real(DType dtype, const Body& body) {
  if (dtype == DType::f32) body.template operator()<float>();
  else body.template operator()<double>();
}

// ---- Range(start, limit, step) ----

std::string reason_against_range(const Node& node) {
  const DType dtype = node.output()->type.dtype;
  const bool known = is_real(dtype) || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  return known ? "" : fmt::format("{} is no type of Range", name_of(dtype));
}

template <typename T>
int64_t range_count(T start, T limit, T step) {
  HONE_CHECK(step != 0, "the step of Range is 0");
  if constexpr (std::is_integral_v<T>) {
    const auto wide = [](T value) { return static_cast<uint64_t>(static_cast<int64_t>(value)); };
    if (step > 0 ? start >= limit : start <= limit) return 0;
    const uint64_t away = step > 0 ? wide(limit) - wide(start) : wide(start) - wide(limit),
                   by = step > 0 ? wide(step) : uint64_t{0} - wide(step), count = (away - 1) / by + 1;
    HONE_CHECK(count < uint64_t{1} << 62, "Range from {} to {} by {} has no end", start, limit, step);
    return static_cast<int64_t>(count);
  } else {
    const double count =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(step));
    HONE_CHECK(count < 1e15, "Range from {} to {} by {} has no end", start, limit, step);
    return static_cast<int64_t>(std::max(0.0, count));
  }
}

template <typename T, typename Index>
void fill_range(std::span<T> out, T start, T step) {
  if constexpr (std::is_integral_v<T>) {
    uint64_t value = static_cast<uint64_t>(start);
    for (T& number : out) number = static_cast<T>(value), value += static_cast<uint64_t>(step);
  } else {
    const auto count = static_cast<Index>(out.size());
    for (Index i = 0; i < count; ++i) out[static_cast<size_t>(i)] = start + static_cast<T>(i) * step;
  }
}

void run_range(const Node& node, HostOperands operands, const HostResults& results) {
  visit(node.output()->type.dtype, [&]<typename T>() {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int16_t> ||
                  std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>) {
      const T start = operands[0]->data<T>()[0], limit = operands[1]->data<T>()[0], step = operands[2]->data<T>()[0];
      const int64_t count = range_count(start, limit, step);
      const std::span<T> out = results.write<T>(0, {count});
      if (count <= std::numeric_limits<int32_t>::max()) fill_range<T, int32_t>(out, start, step);
      else fill_range<T, int64_t>(out, start, step);
    }
  });
}

// ---- ConstantOfShape(sizes) ----

std::string reason_against_fill(const Node& node) {
  const DType dtype = node.output()->type.dtype;
  if (!node.output()->type.ranked) return "its rank is known in a run only";
  const bool plain = is_integer(dtype) || is_float(dtype) || dtype == DType::boolean;
  return plain && (dtype == DType::boolean || is_real(dtype) || dtype == DType::i32 || dtype == DType::i64 ||
                   dtype == DType::f16)
             ? ""
             : fmt::format("of {}", name_of(dtype));
}

void run_fill(const Node& node, HostOperands operands, const HostResults& results) {
  const Dims dims = operands[0]->integers();
  for (const int64_t dim : dims) HONE_CHECK(dim >= 0, "the size {} is negative", dim);
  const Tensor value = node.attrs.has("value") ? node.attrs.tensor("value") : Tensor::scalar(0.0f);
  visit(value.dtype(), [&]<typename T>() {
    const std::span<T> out = results.write<T>(0, dims);
    const T number = value.data<T>()[0];
    const auto is_set = [](std::byte byte) { return byte != std::byte{}; };
    if (std::ranges::any_of(std::as_bytes(std::span(&number, 1)), is_set)) std::ranges::fill(out, number);
    else if (!out.empty()) std::memset(out.data(), 0, out.size_bytes());
  });
}

// ---- Shape, Size ----

std::string reason_against_sizes(const Node& node) {
  return node.output()->symbolic == nullptr ? "its sizes are known in a run only" : "";
}

void run_sizes(const Node& node, HostOperands operands, const HostResults& results) {
  const Dims& dims = operands[0]->dims();
  if (node.is(ops::size)) {
    results.write<int64_t>(0, {})[0] = elements(dims);
    return;
  }
  const std::span<int64_t> out = results.write<int64_t>(0, node.output()->type.shape.values());
  for (size_t i = 0; i < out.size(); ++i) out[i] = (*node.output()->symbolic)[i].value();
}

// ---- Windows: sums of cosines ----

/// Both halves are alike, and the cosines of multiples follow from those before them.
template <typename T>
void fill_window(std::span<T> out, std::span<const double> weights, double turns) {
  const auto size = static_cast<int64_t>(out.size());
  for (int64_t i = 0; i < size && 2 * i <= static_cast<int64_t>(turns); ++i) {
    const double cosine = std::cos(2 * std::numbers::pi * static_cast<double>(i) / turns);
    double sum = 0, before = cosine, now = 1;
    for (const double weight : weights) {
      sum += weight * now;
      const double next = 2 * cosine * now - before;
      before = now, now = next;
    }
    out[static_cast<size_t>(i)] = static_cast<T>(sum);
    if (const int64_t mirror = static_cast<int64_t>(turns) - i; mirror < size)
      out[static_cast<size_t>(mirror)] = static_cast<T>(sum);
  }
}

void run_window(const Node& node, HostOperands operands, const HostResults& results) {
  const int64_t size = operands[0]->integer(0);
  HONE_CHECK(size >= 0, "a window of {} values", size);
  const auto turns = static_cast<double>(node.attrs.integer("periodic") != 0 ? size : size - 1);
  visit_real(node.output()->type.dtype,
             [&]<typename T>() { fill_window(results.write<T>(0, {size}), node.attrs.reals("weights"), turns); });
}

// ---- MelWeightMatrix(bands, transform length, sample rate, low, high) ----

/// The bins at which triangles begin, peak and end.
std::vector<int64_t> mel_edges(int64_t bands, int64_t length, double rate, double low, double high) {
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = mel(low), step = mel(high) - first;
  std::vector<int64_t> edges(static_cast<size_t>(bands) + 2);
  for (size_t i = 0; i < edges.size(); ++i) {
    const double at = first + static_cast<double>(i) * step / static_cast<double>(bands + 2);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    edges[i] = saturated<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate));
  }
  return edges;
}

void run_mel(const Node& node, HostOperands operands, const HostResults& results) {
  const int64_t bands = operands[0]->integer(0), length = operands[1]->integer(0), bins = length / 2 + 1;
  const double rate = operands[2]->real(0), low = operands[3]->real(0), high = operands[4]->real(0);
  HONE_CHECK(bands > 0 && length > 0 && rate > 0, "a mel matrix of {} bands and {} samples at {} Hz", bands, length,
             rate);
  visit_real(node.output()->type.dtype, [&]<typename T>() {
    const std::span<T> out = results.write<T>(0, {bins, bands});
    std::fill(out.begin(), out.end(), T(0));
    const std::vector<int64_t> edges = mel_edges(bands, length, rate, low, high);
    for (int64_t band = 0; band < bands; ++band) {
      const int64_t begin = edges[static_cast<size_t>(band)], peak = edges[static_cast<size_t>(band) + 1],
                    end = edges[static_cast<size_t>(band) + 2];
      const auto put = [&](int64_t bin, double value) {
        out[static_cast<size_t>(bin * bands + band)] = static_cast<T>(value);
      };
      if (peak == begin && peak >= 0 && peak < bins) put(peak, 1);
      for (int64_t bin = std::max<int64_t>(begin, 0); peak > begin && bin <= std::min(peak, bins - 1); ++bin)
        put(bin, static_cast<double>(bin - begin) / static_cast<double>(peak - begin));
      for (int64_t bin = std::max<int64_t>(peak, 0); end > peak && bin < std::min(end, bins); ++bin)
        put(bin, static_cast<double>(end - bin) / static_cast<double>(end - peak));
    }
  });
}

// ---- MaxUnpool(x, indices, sizes?) ----

std::string reason_against_unpool(const Node& node) {
  const DType dtype = node.input(0)->type.dtype;
  if (node.input(1)->type.dtype != DType::i64) return "its indices are not i64";
  return is_real(dtype) ? "" : fmt::format("{} is neither f32 nor f64", name_of(dtype));
}

/// The sizes in which indices count: those without an operand of their own.
Dims pooled_sizes(const Node& node, const Dims& x) {
  const WindowAttrs window(node.attrs, x.size() - 2, {});
  Dims pooled{x[0], x[1]};
  for (size_t i = 0; i + 2 < x.size(); ++i)
    pooled.push_back((x[i + 2] - 1) * window.strides[i] + window.kernel[i] - window.pads[i] -
                     window.pads[i + x.size() - 2]);
  return pooled;
}

template <typename T>
void unpool(std::span<const T> x, std::span<const int64_t> indices, const Dims& pooled, const Dims& dims,
            std::span<T> out) {
  std::fill(out.begin(), out.end(), T(0));
  const int64_t most = elements(pooled);
  if (pooled == dims) {
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t at = indices[i];
      out[static_cast<size_t>(at >= 0 && at < most ? at : checked_index(at, most))] = x[i];
    }
    return;
  }
  const Dims strides = strides_of(dims);
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t rest = checked_index(indices[i], most), at = 0;
    for (size_t axis = pooled.size(); axis-- > 0; rest /= pooled[axis]) at += rest % pooled[axis] * strides[axis];
    out[static_cast<size_t>(checked_index(at, elements(dims)))] = x[i];
  }
}

void run_unpool(const Node& node, HostOperands operands, const HostResults& results) {
  const Tensor& x = *operands[0];
  HONE_CHECK(operands[1]->size() == x.size(), "MaxUnpool has {} indices of {} elements", operands[1]->size(), x.size());
  const Dims pooled = pooled_sizes(node, x.dims()),
             dims = operands.size() > 2 && operands[2] != nullptr ? operands[2]->integers() : pooled;
  HONE_CHECK(dims.size() == pooled.size(), "MaxUnpool is asked for rank {}, not {}", dims.size(), pooled.size());
  visit_real(x.dtype(), [&]<typename T>() {
    unpool<T>(x.data<T>(), operands[1]->data<int64_t>(), pooled, dims, results.write<T>(0, dims));
  });
}

// ---- Unique ----

std::string reason_against_unique(const Node& node) {
  if (node.attrs.has("axis")) return "of slices";
  const DType dtype = node.input(0)->type.dtype;
  const bool known =
      is_real(dtype) || dtype == DType::i8 || dtype == DType::u8 || dtype == DType::i32 || dtype == DType::i64;
  return known ? "" : fmt::format("of {}", name_of(dtype));
}

const HostRule kRules[] = {
    {&ops::range, reason_against_range, run_range},        {&ops::constant_of_shape, reason_against_fill, run_fill},
    {&ops::shape, reason_against_sizes, run_sizes},        {&ops::size, none, run_sizes},
    {&ops::window, reason_against_numbers, run_window},    {&ops::mel_weight_matrix, reason_against_numbers, run_mel},
    {&ops::max_unpool, reason_against_unpool, run_unpool}, {&ops::unique, reason_against_unique, run_unique}};

}  // namespace

const HostRule* host_rule(const Node& node) {
  const auto* found = std::ranges::find(kRules, node.op, &HostRule::op);
  return found == std::end(kRules) ? nullptr : found;
}

}  // namespace hone::cpu
