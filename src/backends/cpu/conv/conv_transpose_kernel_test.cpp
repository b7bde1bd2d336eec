// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/conv/conv_transpose_kernel.h"

#include <gtest/gtest.h>

#include "backends/cpu/conv/pack.h"
#include "backends/cpu/jit/kernel_testing.h"

namespace hone::cpu {
namespace {

using trial::Guarded;
using trial::Random;

ConvTransposeShape random_shape(Random& r) {
  ConvTransposeShape s;
  s.n = r.integer(1, 2), s.groups = r.coin(0.8) ? 1 : 2;
  s.ic = s.groups * r.integer(1, 20), s.oc = s.groups * r.integer(1, 40);
  s.ih = r.integer(1, 7), s.iw = r.integer(1, 12), s.kh = r.integer(1, 5), s.kw = r.integer(1, 5);
  s.stride_h = r.integer(1, 3), s.stride_w = r.integer(1, 3);
  if (s.stride_h == 1) s.dilation_h = r.integer(1, 2);
  if (s.stride_w == 1) s.dilation_w = r.integer(1, 2);
  const int64_t full_h = (s.ih - 1) * s.stride_h + (s.kh - 1) * s.dilation_h + 1,
                full_w = (s.iw - 1) * s.stride_w + (s.kw - 1) * s.dilation_w + 1;
  s.pad_top = r.integer(0, std::min<int64_t>(2, full_h - 1)),
  s.pad_left = r.integer(0, std::min<int64_t>(2, full_w - 1));
  // With pads at the far side or output padding.
  s.oh = std::max<int64_t>(1, full_h - s.pad_top + r.integer(-2, 1)),
  s.ow = std::max<int64_t>(1, full_w - s.pad_left + r.integer(-2, 1));
  if (r.coin(0.3)) s.src_pixel_stride = s.ic + r.integer(0, 9);
  if (r.coin(0.3)) s.dst_pixel_stride = s.oc + r.integer(0, 9);
  if (r.coin(0.3)) s.residual_pixel_stride = s.oc + r.integer(0, 9);
  return s;
}

/// By scattering, as the operator is defined: sums[n][y][x][o].
std::vector<double> scatter(const ConvTransposeShape& s, const std::vector<float>& src, const std::vector<float>& w) {
  std::vector<double> sums(size_t(s.n * s.oh * s.ow * s.oc), 0);
  const int64_t pixel = s.src_pixel_stride ? s.src_pixel_stride : s.ic, group_oc = s.oc / s.groups,
                group_ic = s.ic / s.groups;
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t iy = 0; iy < s.ih; ++iy)
      for (int64_t ix = 0; ix < s.iw; ++ix)
        for (int64_t ky = 0; ky < s.kh; ++ky)
          for (int64_t kx = 0; kx < s.kw; ++kx) {
            const int64_t y = iy * s.stride_h + ky * s.dilation_h - s.pad_top,
                          x = ix * s.stride_w + kx * s.dilation_w - s.pad_left;
            if (y < 0 || x < 0 || y >= s.oh || x >= s.ow) continue;
            for (int64_t i = 0; i < s.ic; ++i)
              for (int64_t o = 0; o < group_oc; ++o)
                sums[size_t(((n * s.oh + y) * s.ow + x) * s.oc + i / group_ic * group_oc + o)] +=
                    double(src[size_t(((n * s.ih + iy) * s.iw + ix) * pixel + i)]) *
                    double(w[size_t(((i * group_oc + o) * s.kh + ky) * s.kw + kx)]);
          }
  return sums;
}

TEST(ConvTransposeKernel, AgreesWithScatteringOnRandomProblems) {
  for (Isa isa : trial::machine_isas())
    for (uint64_t i = 0; i < 300; ++i) {
      const uint64_t seed = trial::test_seed() + i;
      SCOPED_TRACE("HONE_TEST_SEED=" + std::to_string(seed) + " on " + std::string(to_string(isa)));
      Random r(seed);
      const ConvTransposeShape s = random_shape(r);
      const Epilogue e = r.epilogue();
      const ConvConfig config = conv_transpose_candidates(s, isa, 2).front();
      const int64_t pixels = s.n * s.oh * s.ow, panel = config.panel_channels(isa);
      const int64_t in = s.src_pixel_stride ? s.src_pixel_stride : s.ic,
                    out = s.dst_pixel_stride ? s.dst_pixel_stride : s.oc;
      const int64_t res = s.residual_pixel_stride ? s.residual_pixel_stride : s.oc;
      const auto src = r.floats(size_t(s.n * s.ih * s.iw * in)),
                 w = r.floats(size_t(s.ic * s.oc / s.groups * s.kh * s.kw), 0.3f);
      const auto bias = r.floats(size_t(s.oc)), residual = r.floats(size_t(pixels * res));
      std::vector<float> packed(packed_conv_transpose_floats(s, panel)),
          packed_bias(packed_bias_floats(s.oc, s.groups, panel));
      pack_conv_transpose_weights(w.data(), s, panel, config.depth, packed.data());
      pack_bias(bias.data(), s.oc, s.groups, panel, packed_bias.data());
      const bool at_end = r.coin();
      const Guarded dst(std::vector<float>(size_t(pixels * out), 77.0f), at_end), guarded_src(src, at_end),
          guarded_packed(packed, at_end);
      const Guarded guarded_bias(packed_bias, at_end), guarded_residual(residual, at_end);
      const ConvTransposeKernel kernel(s, e, config, isa);
      trial::on_team(int(r.integer(1, 3)), [&](int worker, int workers) {
        kernel.run(
            worker, workers,
            {guarded_src.data(), guarded_packed.data(), guarded_bias.data(), guarded_residual.data(), dst.data()});
      });
      const auto sums = scatter(s, src, w);
      for (int64_t p = 0; p < pixels; ++p)
        for (int64_t o = 0; o < out; ++o) {
          const float got = dst[size_t(p * out + o)];
          if (o >= s.oc) {
            ASSERT_EQ(got, 77.0f);
            continue;
          }
          const double want =
              trial::finish(e, sums[size_t(p * s.oc + o)], bias[size_t(o)], residual[size_t(p * res + o)]);
          ASSERT_NEAR(got, want, 5e-6 * (1 + std::abs(want))) << "pixel " << p << " channel " << o;
        }
    }
}

}  // namespace
}  // namespace hone::cpu
