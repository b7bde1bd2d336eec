// SPDX-License-Identifier: Apache-2.0
#include "ops/weight_codes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "ir/op.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone {
namespace {

constexpr int kMostSteps = 128;

/// How far a weight may be from its step, as a part of it: both it and the largest of its channel were rounded to their type.
double slack_of(DType dtype) { return dtype == DType::f16 ? 0x1p-10 : 0x1p-20; }

/// The nearest whole number of what is far below 2^22 in floats and 2^51 in doubles, ties to even: by additions, which are made for several at
/// once.
template <typename Real>
Real nearest(Real steps) {
  constexpr Real kWhole = Real{3} / 2 / std::numeric_limits<Real>::epsilon();
  return (steps + kWhole) - kWhole;
}

bool are_steps(std::span<const float> weights, double scale, double slack) {
  constexpr size_t kAtOnce = 64;  // most scales that are none fail at the first few
  const double steps_of_one = 1 / scale;
  for (size_t begin = 0; begin < weights.size(); begin += kAtOnce) {
    bool all = true;
    for (const float weight : weights.subspan(begin, std::min(kAtOnce, weights.size() - begin))) {
      const double steps = weight * steps_of_one, code = nearest(steps);
      all &= (code >= -kMostSteps) & (code < kMostSteps) & (std::abs(steps - code) <= slack * std::abs(code));
    }
    if (!all) return false;
  }
  return true;
}

/// The scale by which the weights are the fewest steps, as exactly as they tell; 0 where there is none.
double scale_of(std::span<const float> weights, double slack) {
  double most = 0;
  for (const float weight : weights) most = std::max(most, std::abs(static_cast<double>(weight)));
  if (most == 0) return 1;
  if (!std::isfinite(most)) return 0;
  for (int steps = 1; steps <= kMostSteps; ++steps) {
    const double scale = most / steps;
    if (!are_steps(weights, scale, slack)) continue;
    const double steps_of_one = 1 / scale;
    double products = 0, squares = 0;
    for (const float weight : weights) {
      const double code = nearest(weight * steps_of_one);
      products += weight * code;
      squares += code * code;
    }
    return products / squares;
  }
  return 0;
}

bool is_constant_or_missing(const Value* value) { return value == nullptr || value->is_constant(); }

bool has_plain_window(const Node& conv) {
  const size_t axes = conv.input(0)->type.shape.rank() - 2;
  const WindowAttrs window(conv.attrs, axes, kernel_of_weight(conv.input(1)->type.shape));
  return axes <= 2 && conv.attrs.integer("group") == 1 && window.auto_pad == "NOTSET";
}

}  // namespace

std::optional<WeightCodes> weight_codes(const Tensor& weights, size_t channel_axis) {
  if (weights.dtype() != DType::f32 && weights.dtype() != DType::f16) return std::nullopt;
  const Dims& dims = weights.dims();
  const auto channels = static_cast<size_t>(dims[channel_axis]);
  const auto inner = static_cast<size_t>(elements(std::span(dims).subspan(channel_axis + 1)));
  const Floats values(weights);
  WeightCodes result{std::vector<int8_t>(values.size()), std::vector<float>(channels)};
  const size_t depth = channels == 0 ? 0 : values.size() / channels;
  const auto find = [&](size_t channel, std::span<const float> from, std::span<int8_t> to) {
    const double scale = scale_of(from, slack_of(weights.dtype()));
    if (scale == 0) return false;
    const auto steps_of_one = static_cast<float>(1 / scale);
    for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<int8_t>(nearest(from[i] * steps_of_one));
    result.scales[channel] = static_cast<float>(scale);
    return true;
  };
  if (inner == depth) {
    for (size_t c = 0; c < channels; ++c)
      if (!find(c, values.span().subspan(c * depth, depth), std::span(result.codes).subspan(c * depth, depth)))
        return std::nullopt;
    return result;
  }
  // Of some channels at once: where they lie side by side a line of the cache is read once.
  constexpr size_t kTogether = 16;
  std::vector<float> rows(kTogether * depth);
  std::vector<int8_t> codes(kTogether * depth);
  for (size_t first = 0; first < channels; first += kTogether) {
    const size_t count = std::min(kTogether, channels - first);
    const auto places = [&](auto&& visit) {
      for (size_t at = 0; at < depth; at += inner)
        for (size_t c = 0; c < count; ++c)
          for (size_t i = 0; i < inner; ++i) visit(at * channels + (first + c) * inner + i, c * depth + at + i);
    };
    places([&](size_t from, size_t to) { rows[to] = values.data()[from]; });
    for (size_t c = 0; c < count; ++c)
      if (!find(first + c, std::span(rows).subspan(c * depth, depth), std::span(codes).subspan(c * depth, depth)))
        return std::nullopt;
    places([&](size_t to, size_t from) { result.codes[to] = codes[from]; });
  }
  return result;
}

bool multiplies_codes(const Node& node) {
  const bool conv = node.is(ops::conv);
  if ((!conv && !node.is(ops::linear)) || node.input(0)->is_constant() || !node.input(1)->is_constant() ||
      !is_constant_or_missing(node.input(2)) || (conv && !has_plain_window(node)))
    return false;
  const Dims& weights = node.input(1)->constant->dims();
  const size_t channels = conv || node.attrs.integer("trans_w") != 0 ? 0 : 1;
  return weights[1 - channels] % kCodesAtOnce == 0 && weight_codes(*node.input(1)->constant, channels).has_value();
}

}  // namespace hone
