// SPDX-License-Identifier: Apache-2.0
#include "ops/weight_codes.h"

#include <algorithm>
#include <cmath>
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

bool are_steps(std::span<const float> weights, double scale, double slack) {
  return std::ranges::all_of(weights, [&](float weight) {
    const double steps = weight / scale, code = std::nearbyint(steps);
    return code >= -kMostSteps && code < kMostSteps && std::abs(steps - code) <= slack * std::abs(code);
  });
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
    double products = 0, squares = 0;
    for (const float weight : weights) {
      const double code = std::nearbyint(weight / scale);
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
  std::vector<float> channel;
  for (size_t c = 0; c < channels; ++c) {
    const auto places = [&](auto&& visit) {
      for (size_t from = c * inner; from < values.size(); from += channels * inner)
        for (size_t i = from; i < from + inner; ++i) visit(i);
    };
    channel.clear();
    places([&](size_t i) { channel.push_back(values.data()[i]); });
    const double scale = scale_of(channel, slack_of(weights.dtype()));
    if (scale == 0) return std::nullopt;
    places([&](size_t i) { result.codes[i] = static_cast<int8_t>(std::nearbyint(values.data()[i] / scale)); });
    result.scales[c] = static_cast<float>(scale);
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
