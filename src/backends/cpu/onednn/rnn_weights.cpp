// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/onednn/rnn_weights.h"

#include <algorithm>

namespace hone::cpu::onednn {

Tensor arrange_weights(const Tensor& weights, std::span<const int> gates, int64_t hidden) {
  const int64_t d_count = weights.dims()[0], k_count = weights.dims()[2], g_count = static_cast<int64_t>(gates.size());
  TensorBuilder builder(DType::f32, {d_count, k_count, g_count, hidden});
  const std::span<const float> from = weights.data<float>();
  float* to = builder.data<float>().data();
  for (int64_t d = 0; d < d_count; ++d)
    for (int64_t k = 0; k < k_count; ++k)
      for (int64_t g = 0; g < g_count; ++g)
        for (int64_t h = 0; h < hidden; ++h)
          *to++ = from[static_cast<size_t>(((d * g_count + gates[static_cast<size_t>(g)]) * hidden + h) * k_count + k)];
  return builder.finish();
}

Tensor arrange_bias(const Tensor* bias, std::span<const int> gates, int64_t directions, int64_t hidden,
                    bool late_reset) {
  const int64_t g_count = static_cast<int64_t>(gates.size()), rows = g_count + (late_reset ? 1 : 0);
  TensorBuilder builder(DType::f32, {directions, rows, hidden});
  const std::span<float> to = builder.data<float>();
  std::fill(to.begin(), to.end(), 0.0f);
  if (bias == nullptr) return builder.finish();
  const std::span<const float> from = bias->data<float>();
  for (int64_t d = 0; d < directions; ++d)
    for (int64_t g = 0; g < g_count; ++g)
      for (int64_t h = 0; h < hidden; ++h) {
        const int64_t at = d * 2 * g_count * hidden + gates[static_cast<size_t>(g)] * hidden + h,
                      target = (d * rows + g) * hidden + h;
        const float input = from[static_cast<size_t>(at)], state = from[static_cast<size_t>(at + g_count * hidden)];
        const bool apart = late_reset && g == g_count - 1;
        to[static_cast<size_t>(target)] = apart ? input : input + state;
        if (apart) to[static_cast<size_t>(target + hidden)] = state;
      }
  return builder.finish();
}

}  // namespace hone::cpu::onednn
