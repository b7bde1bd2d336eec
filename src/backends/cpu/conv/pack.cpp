// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/conv/pack.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/run/team.h"

namespace hone::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t depth_block_size(int64_t total, int64_t depth) {
  if (depth <= 0 || depth >= total) return total;
  const int64_t size = ceil_div(total, ceil_div(total, depth));
  return std::min(total, ceil_div(size, 8) * 8);  // whole unrolled steps
}

size_t packed_conv_floats(const ConvShape& s, int64_t panel) {
  return size_t(s.groups * ceil_div(s.group_oc(), panel) * panel * s.kh * s.kw * s.group_ic());
}

void pack_conv_weights(const float* oihw, const ConvShape& s, int64_t panel, int64_t depth, float* packed) {
  const int64_t ic = s.group_ic(), oc = s.group_oc(), taps = s.kh * s.kw;
  const int64_t block = depth_block_size(ic, depth), panels = ceil_div(oc, panel), panel_floats = panel * taps * ic;
  share_out(s.groups * panels, size_t(panel_floats) * sizeof(float), [&](int64_t index) {
    const int64_t group = index / panels, first = index % panels * panel;
    float* to = packed + index * panel_floats;
    for (int64_t k0 = 0; k0 < ic; k0 += block)
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t k = k0; k < std::min(ic, k0 + block); ++k)
          for (int64_t o = first; o < first + panel; ++o)
            *to++ = o < oc ? oihw[((group * oc + o) * ic + k) * taps + tap] : 0.0f;
  });
}

size_t packed_bias_floats(int64_t oc, int64_t groups, int64_t panel) {
  return size_t(groups * ceil_div(oc / groups, panel) * panel);
}

void pack_bias(const float* bias, int64_t oc, int64_t groups, int64_t panel, float* packed) {
  const int64_t group_oc = oc / groups;
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t o = 0; o < ceil_div(group_oc, panel) * panel; ++o)
      *packed++ = o < group_oc ? bias[group * group_oc + o] : 0.0f;
}

size_t packed_gemm_floats(int64_t n, int64_t k, int64_t panel) { return size_t(ceil_div(n, panel) * panel * k); }

void pack_gemm_weights(const float* b, int64_t n, int64_t k, int64_t ldb, bool transposed, int64_t panel, int64_t,
                       float* packed) {
  // With a single tap the depth blocks follow each other in any case.
  constexpr int64_t kRows = 16;  // that a cache line of a transposed matrix has
  share_out(ceil_div(n, panel), size_t(panel * k) * sizeof(float), [&](int64_t index) {
    const int64_t first = index * panel, used = std::min(panel, n - first);
    float* to = packed + first * k;
    for (int64_t row = 0; row < k; row += kRows, to += kRows * panel) {
      const int64_t rows = std::min(kRows, k - row);
      for (int64_t r = 0; r < rows; ++r) {
        if (!transposed) std::memcpy(to + r * panel, b + (row + r) * ldb + first, size_t(used) * sizeof(float));
        std::fill(to + r * panel + used, to + (r + 1) * panel, 0.0f);
      }
      for (int64_t j = 0; transposed && j < used; ++j)
        for (int64_t r = 0; r < rows; ++r) to[r * panel + j] = b[(first + j) * ldb + row + r];
    }
  });
}

size_t packed_depthwise_floats(int64_t channels, int64_t kh, int64_t kw, int64_t block) {
  return size_t(ceil_div(channels, block) * block * kh * kw);
}

void pack_depthwise_weights(const float* chw, int64_t channels, int64_t kh, int64_t kw, int64_t block, float* packed) {
  for (int64_t first = 0; first < channels; first += block)
    for (int64_t tap = 0; tap < kh * kw; ++tap)
      for (int64_t c = first; c < first + block; ++c) *packed++ = c < channels ? chw[c * kh * kw + tap] : 0.0f;
}

}  // namespace hone::cpu
