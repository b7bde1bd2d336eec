// SPDX-License-Identifier: Apache-2.0
#include "ops/window.h"

#include <algorithm>
#include <limits>

#include "tensor/free_memory.h"

namespace hone {
namespace {

Dims list_or(const Attrs& attrs, std::string_view name, size_t length, int64_t fallback) {
  if (!attrs.has(name) || attrs.integers(name).empty()) return Dims(length, fallback);
  const Dims& list = attrs.integers(name);
  HONE_CHECK(list.size() == length, "{} has {} numbers where {} are needed", name, list.size(), length);
  return list;
}

}  // namespace

std::pair<int64_t, int64_t> same_padding(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, bool upper) {
  const int64_t results = (input + stride - 1) / stride;
  const int64_t total = std::max<int64_t>(0, (results - 1) * stride + (kernel - 1) * dilation + 1 - input);
  const int64_t small = total / 2;
  return upper ? std::pair(small, total - small) : std::pair(total - small, small);
}

WindowAttrs::WindowAttrs(const Attrs& attrs, size_t rank, Dims own_kernel) {
  HONE_CHECK(rank > 0, "a window needs at least one spatial axis");
  const bool given = attrs.has("kernel_shape") && !attrs.integers("kernel_shape").empty();
  kernel = given ? attrs.integers("kernel_shape") : own_kernel;
  HONE_CHECK(own_kernel.empty() || kernel == own_kernel, "kernel_shape {} does not match the weight's {}",
             join_dims(kernel), join_dims(own_kernel));
  HONE_CHECK(kernel.size() == rank, "kernel_shape has {} numbers where {} are needed", kernel.size(), rank);
  strides = list_or(attrs, "strides", rank, 1);
  dilations = list_or(attrs, "dilations", rank, 1);
  pads = list_or(attrs, "pads", 2 * rank, 0);
  if (attrs.has("auto_pad")) auto_pad = attrs.text("auto_pad");
  if (auto_pad.empty()) auto_pad = "NOTSET";
  ceil_mode = attrs.integer_or("ceil_mode", 0) != 0;
  check(rank);
  for (size_t i = 0; i < rank; ++i) {
    HONE_CHECK(kernel[i] > 0 && kernel[i] <= kMost, "kernel size {} is out of range", kernel[i]);
    HONE_CHECK(strides[i] > 0 && strides[i] <= kMost, "stride {} is out of range", strides[i]);
    HONE_CHECK(dilations[i] > 0 && dilations[i] <= kMost, "dilation {} is out of range", dilations[i]);
    for (const int64_t pad : {pads[i], pads[i + rank]})
      HONE_CHECK(pad >= -kMost && pad <= kMost, "padding {} is out of range", pad);
  }
}

void WindowAttrs::check(size_t rank) const {
  HONE_CHECK(kernel.size() == rank && strides.size() == rank && dilations.size() == rank && pads.size() == 2 * rank,
             "a window over {} axes has {} sizes", rank, kernel.size());
  HONE_CHECK(auto_pad == "NOTSET" || auto_pad == "VALID" || auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER",
             "auto_pad '{}' is not known", auto_pad);
}

std::pair<int64_t, int64_t> WindowAttrs::padding(int64_t input, size_t axis) const {
  if (auto_pad == "NOTSET") return {pads[axis], pads[axis + kernel.size()]};
  if (auto_pad == "VALID") return {0, 0};
  return same_padding(input, kernel[axis], strides[axis], dilations[axis], auto_pad == "SAME_UPPER");
}

Dim WindowAttrs::result_size(const Dim& input, size_t axis) const {
  const Dim stride(strides[axis]);
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") return ceil_divide(input, stride);
  const auto [begin, end] = padding(0, axis);
  const int64_t extent = (kernel[axis] - 1) * dilations[axis] + 1;
  const Dim room = input + Dim(begin + end - extent);
  HONE_CHECK(!room.is_constant() || room.value() >= 0 || input == Dim(0),
             "a window of {} does not fit an axis of {} with padding {}", extent, input.text(), begin + end);
  const Dim result = ceil_mode ? ceil_divide(room, stride) + Dim(1) : floor_divide(room, stride) + Dim(1);
  // The last window must begin inside the input or its left padding.
  return ceil_mode ? minimum(result, ceil_divide(input + Dim(begin), stride)) : result;
}

WindowTable::WindowTable(const WindowAttrs& window, std::span<const int64_t> input,
                         std::span<const int64_t> result_sizes)
    : result(result_sizes.begin(), result_sizes.end()),
      taps(elements(window.kernel)),
      results(elements(result_sizes)),
      inputs(elements(input)) {
  HONE_CHECK(inputs < std::numeric_limits<int32_t>::max(), "{} spatial elements are too many", inputs);
  const size_t rank = input.size();
  require_memory(DType::i32, Dims{taps, results});
  offsets.assign(static_cast<size_t>(taps * results), -1);
  padded_taps.assign(static_cast<size_t>(results), 0);
  Dims begin(rank), end(rank);
  for (size_t i = 0; i < rank; ++i) std::tie(begin[i], end[i]) = window.padding(input[i], i);
  Dims tap(rank), at(rank);
  for (int64_t t = 0; t < taps; ++t) {
    for (size_t i = rank, rest = static_cast<size_t>(t); i-- > 0; rest /= static_cast<size_t>(window.kernel[i]))
      tap[i] = static_cast<int64_t>(rest) % window.kernel[i];
    std::fill(at.begin(), at.end(), 0);
    for (int64_t r = 0; r < results; ++r) {
      int64_t offset = 0;
      bool inside = true, padded = true;
      for (size_t i = 0; i < rank; ++i) {
        const int64_t x = at[i] * window.strides[i] - begin[i] + tap[i] * window.dilations[i];
        inside &= x >= 0 && x < input[i];
        padded &= x < input[i] + end[i];
        offset = offset * input[i] + x;
      }
      if (inside) offsets[static_cast<size_t>(t * results + r)] = static_cast<int32_t>(offset);
      padded_taps[static_cast<size_t>(r)] += padded ? 1 : 0;
      for (size_t i = rank; i-- > 0;) {
        if (++at[i] < result[i]) break;
        at[i] = 0;
      }
    }
  }
}

Dims spatial_of(std::span<const int64_t> dims) { return Dims(dims.begin() + 2, dims.end()); }

Dims kernel_of_weight(const Shape& weight) {
  HONE_CHECK(weight.rank() >= 3, "the weight has rank {} where at least 3 is needed", weight.rank());
  Dims kernel;
  for (size_t i = 2; i < weight.rank(); ++i) {
    HONE_CHECK(weight[i].is_constant(), "the weight's spatial sizes must be numbers, not {}", weight[i].text());
    kernel.push_back(weight[i].value());
  }
  return kernel;
}

void complete_window_attrs(ImportContext&, Attrs& attrs, const Shape& input, Dims kernel, bool with_dilations) {
  HONE_CHECK(input.rank() >= 3, "the input has rank {} where at least 3 is needed", input.rank());
  const size_t rank = input.rank() - 2;
  const WindowAttrs window(attrs, rank, std::move(kernel));
  attrs.set("kernel_shape", window.kernel);
  attrs.set("strides", window.strides);
  if (with_dilations) attrs.set("dilations", window.dilations);
  Dims pads(2 * rank, 0);
  bool known = true;
  for (size_t i = 0; i < rank; ++i) {
    const Dim& size = input[i + 2];
    // With a stride of 1 the padding does not depend on the size.
    const bool same = window.auto_pad.starts_with("SAME");
    known &= !same || size.is_constant() || window.strides[i] == 1;
    const auto [begin, end] = window.padding(size.is_constant() ? size.value() : 1, i);
    pads[i] = begin, pads[i + rank] = end;
  }
  attrs.set("pads", known ? pads : Dims(2 * rank, 0));
  attrs.set("auto_pad", known ? std::string("NOTSET") : window.auto_pad);
}

int64_t flops_of_filters(const Node& node, const SymbolValues& sizes) {
  const Dims weights = node.input(1)->type.shape.evaluate(sizes);
  if (weights.empty() || weights[0] == 0) return 0;
  return 2 * (elements(weights) / weights[0]) * elements(node.output()->type.shape.evaluate(sizes));
}

}  // namespace hone
