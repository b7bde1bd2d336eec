// SPDX-License-Identifier: Apache-2.0
#include "quantize/scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/support.h"

namespace hone {
namespace {

constexpr float kSteps = 127, kCodes = 255, kLargestF8 = 448;
/// Smaller scales have inverses that are not finite.
constexpr float kLeastScale = std::numeric_limits<float>::min();

float magnitude_of(const ClippedRange& range) { return std::max(std::fabs(range.low), std::fabs(range.high)); }

}  // namespace

float largest_code(Codes codes) { return codes == Codes::f8e4m3 ? kLargestF8 : kSteps; }

TensorScale scale_of(const ClippedRange& range, Codes codes) {
  if (range.low == 0 && range.high == 0) return {};
  if (codes != Codes::asymmetric) return {std::max(kLeastScale, magnitude_of(range) / largest_code(codes)), 0};
  const float low = std::min(range.low, 0.0F), high = std::max(range.high, 0.0F);
  const float scale = std::max(kLeastScale, high / kCodes - low / kCodes);
  return {scale, static_cast<int>(std::nearbyint(std::clamp(-low / scale, 0.0F, kCodes)))};
}

TensorScales scales_of(const Placement& placement, Codes codes,
                       const std::function<ClippedRange(const PlacedTensor&)>& range) {
  std::map<size_t, ClippedRange> groups;
  for (const PlacedTensor& tensor : placement.tensors) {
    const ClippedRange found = range(tensor);
    const auto [group, is_first] = groups.try_emplace(tensor.group, found);
    if (is_first) continue;
    group->second.low = std::min(group->second.low, found.low);
    group->second.high = std::max(group->second.high, found.high);
  }
  TensorScales scales;
  for (const PlacedTensor& tensor : placement.tensors)
    scales[tensor.value->name] = scale_of(groups.at(tensor.group), codes);
  return scales;
}

TensorScales united_scales(const Placement& placement, const TensorScales& given) {
  std::map<size_t, TensorScale> groups;
  for (const PlacedTensor& tensor : placement.tensors) {
    const TensorScale scale = given.at(tensor.value->name);
    const auto [group, is_first] = groups.try_emplace(tensor.group, scale);
    if (!is_first && group->second.scale < scale.scale) group->second = scale;
  }
  TensorScales scales;
  for (const PlacedTensor& tensor : placement.tensors) scales[tensor.value->name] = groups.at(tensor.group);
  return scales;
}

Tensor zero_point(Codes codes, int zero) {
  if (codes == Codes::asymmetric) return Tensor::scalar(static_cast<uint8_t>(zero));
  if (codes == Codes::symmetric) return Tensor::scalar(static_cast<int8_t>(zero));
  TensorBuilder builder(DType::f8e4m3fn, {});
  builder.codes()[0] = 0;
  return builder.finish();
}

namespace {

/// Calls `visit(element, channel)` for each.
template <typename Visit>
void each_weight(const Dims& dims, int64_t axis, const Visit& visit) {
  const AxisView channels(dims, static_cast<size_t>(axis));
  for (int64_t o = 0; o < channels.outer; ++o)
    for (int64_t c = 0; c < channels.length; ++c)
      for (int64_t i = 0; i < channels.inner; ++i)
        visit(static_cast<size_t>((o * channels.length + c) * channels.inner + i), static_cast<size_t>(c));
}

}  // namespace

ChannelWeights quantize_weights(const Tensor& weights, int64_t axis, Codes codes) {
  const std::span<const float> real = weights.data<float>();
  std::vector<float> scales(static_cast<size_t>(weights.dims()[static_cast<size_t>(axis)]), 0.0F);
  each_weight(weights.dims(), axis, [&](size_t at, size_t channel) {
    HONE_CHECK(std::isfinite(real[at]), "weight {} is not finite", at);
    scales[channel] = std::max(scales[channel], std::fabs(real[at]));
  });
  const Codes signed_codes = codes == Codes::f8e4m3 ? codes : Codes::symmetric;
  for (float& scale : scales) scale = scale_of({-scale, scale}, signed_codes).scale;
  TensorBuilder result(codes == Codes::f8e4m3 ? DType::f8e4m3fn : DType::i8, weights.dims());
  const std::span<uint8_t> code = result.codes();
  each_weight(weights.dims(), axis, [&](size_t at, size_t channel) {
    const float value = real[at] / scales[channel];
    if (codes == Codes::f8e4m3) code[at] = float_to_small(DType::f8e4m3fn, value);
    else code[at] = static_cast<uint8_t>(static_cast<int8_t>(std::clamp(std::nearbyint(value), -kSteps, kSteps)));
  });
  return {result.finish(), Tensor::of<float>({static_cast<int64_t>(scales.size())}, scales)};
}

Tensor dequantized(const ChannelWeights& weights, int64_t axis) {
  const Tensor& codes = weights.codes;
  TensorBuilder real(DType::f32, codes.dims());
  const std::span<const float> scales = weights.scales.data<float>();
  each_weight(codes.dims(), axis, [&](size_t at, size_t channel) {
    real.data<float>()[at] = static_cast<float>(codes.real(static_cast<int64_t>(at))) * scales[channel];
  });
  return real.finish();
}

}  // namespace hone
