// SPDX-License-Identifier: Apache-2.0
#include "quantize/scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/support.h"

namespace hone {
namespace {

constexpr float kSteps = 127, kCodes = 255;
/// Smaller scales have inverses that are not finite.
constexpr float kLeastScale = std::numeric_limits<float>::min();

float magnitude_of(const ClippedRange& range) { return std::max(std::fabs(range.low), std::fabs(range.high)); }

}  // namespace

TensorScale scale_of(const ClippedRange& range, Codes codes) {
  if (range.low == 0 && range.high == 0) return {};
  if (codes == Codes::symmetric) return {std::max(kLeastScale, magnitude_of(range) / kSteps), 0};
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
  return codes == Codes::symmetric ? Tensor::scalar(static_cast<int8_t>(zero))
                                   : Tensor::scalar(static_cast<uint8_t>(zero));
}

IntegerWeights quantize_weights(const Tensor& weights, int64_t axis) {
  const std::span<const float> real = weights.data<float>();
  const AxisView channels(weights.dims(), static_cast<size_t>(axis));
  std::vector<float> scales(static_cast<size_t>(channels.length), 0.0F);
  const auto each = [&](const auto& visit) {
    for (int64_t o = 0; o < channels.outer; ++o)
      for (int64_t c = 0; c < channels.length; ++c)
        for (int64_t i = 0; i < channels.inner; ++i)
          visit(static_cast<size_t>((o * channels.length + c) * channels.inner + i), static_cast<size_t>(c));
  };
  each([&](size_t at, size_t channel) {
    HONE_CHECK(std::isfinite(real[at]), "weight {} is not finite", at);
    scales[channel] = std::max(scales[channel], std::fabs(real[at]));
  });
  for (float& scale : scales) scale = scale_of({-scale, scale}, Codes::symmetric).scale;
  TensorBuilder codes(DType::i8, weights.dims());
  const std::span<int8_t> code = codes.data<int8_t>();
  each([&](size_t at, size_t channel) {
    code[at] = static_cast<int8_t>(std::clamp(std::nearbyint(real[at] / scales[channel]), -kSteps, kSteps));
  });
  return {codes.finish(), Tensor::of<float>({channels.length}, scales)};
}

}  // namespace hone
