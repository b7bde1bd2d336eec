// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/conv/depthwise_kernel.h"

#include <gtest/gtest.h>

#include "backends/cpu/conv/pack.h"
#include "backends/cpu/jit/kernel_testing.h"
#include "backends/cpu/jit/tile_code.h"

namespace hone::cpu {
namespace {

using trial::Guarded;
using trial::Random;

ConvShape random_shape(Random& r) {
  ConvShape s;
  s.n = r.integer(1, 2);
  s.ic = s.oc = s.groups = r.integer(1, r.coin() ? 20 : 130);
  s.kh = r.pick({1, 2, 3, 3, 5, 7});
  s.kw = r.pick({1, 3, 3, 4, 5, 7, 11});
  s.stride_h = r.integer(1, 3);
  s.stride_w = r.integer(1, 3);
  s.dilation_h = r.coin(0.7) ? 1 : 2;
  s.dilation_w = r.coin(0.7) ? 1 : r.integer(2, 3);
  s.pad_top = r.integer(0, 4), s.pad_bottom = r.integer(0, 4), s.pad_left = r.integer(0, 4),
  s.pad_right = r.integer(0, 4);
  s.ih = r.integer(1, 9) + std::max<int64_t>(0, s.dilation_h * (s.kh - 1) - s.pad_top - s.pad_bottom);
  s.iw = r.integer(1, 20) + std::max<int64_t>(0, s.dilation_w * (s.kw - 1) - s.pad_left - s.pad_right);
  if (r.coin(0.3)) s.src_pixel_stride = s.ic + r.integer(0, 9);
  if (r.coin(0.3)) s.dst_pixel_stride = s.ic + r.integer(0, 9);
  if (r.coin(0.3)) s.residual_pixel_stride = s.ic + r.integer(0, 9);
  return s;
}

double reference(const ConvShape& s, const std::vector<float>& src, const std::vector<float>& w, int64_t n, int64_t oy,
                 int64_t ox, int64_t c) {
  double sum = 0;
  for (int64_t ky = 0; ky < s.kh; ++ky)
    for (int64_t kx = 0; kx < s.kw; ++kx) {
      const int64_t y = oy * s.stride_h - s.pad_top + ky * s.dilation_h,
                    x = ox * s.stride_w - s.pad_left + kx * s.dilation_w;
      if (y < 0 || y >= s.ih || x < 0 || x >= s.iw) continue;
      sum += double(src[size_t(((n * s.ih + y) * s.iw + x) * s.src_stride() + c)]) *
             double(w[size_t((c * s.kh + ky) * s.kw + kx)]);
    }
  return sum;
}

TEST(DepthwiseKernel, AgreesWithNaiveLoopsOnRandomProblems) {
  for (Isa isa : trial::machine_isas())
    for (uint64_t i = 0; i < 500; ++i) {
      const uint64_t seed = trial::test_seed() + i;
      SCOPED_TRACE("HONE_TEST_SEED=" + std::to_string(seed) + " on " + std::string(to_string(isa)));
      Random r(seed);
      const ConvShape s = random_shape(r);
      const Epilogue e = r.epilogue();
      DepthwiseConfig config{int(r.integer(1, 14)), int(r.integer(1, 4))};
      if (r.coin()) config = depthwise_candidates(s, isa, 2).front();
      if (!tile_fits(isa, config.pixels, config.vectors)) config = {3, 1};
      const int64_t pixels = s.n * s.oh() * s.ow(), block = config.block_channels(isa);
      const auto src = r.floats(size_t(s.n * s.ih * s.iw * s.src_stride()));
      const auto w = r.floats(size_t(s.oc * s.kh * s.kw)), bias = r.floats(size_t(s.oc));
      const auto residual = r.floats(size_t(pixels * s.residual_stride()));
      std::vector<float> packed(packed_depthwise_floats(s.oc, s.kh, s.kw, block)),
          packed_bias(packed_bias_floats(s.oc, 1, block));
      pack_depthwise_weights(w.data(), s.oc, s.kh, s.kw, block, packed.data());
      pack_bias(bias.data(), s.oc, 1, block, packed_bias.data());
      const bool at_end = r.coin();
      const Guarded dst(std::vector<float>(size_t(pixels * s.dst_stride()), 77.0f), at_end), guarded_src(src, at_end),
          guarded_packed(packed, at_end);
      const Guarded guarded_bias(packed_bias, at_end), guarded_residual(residual, at_end);
      const DepthwiseKernel kernel(s, e, config, isa);
      trial::on_team(int(r.integer(1, 3)), [&](int worker, int workers) {
        kernel.run(
            worker, workers,
            {guarded_src.data(), guarded_packed.data(), guarded_bias.data(), guarded_residual.data(), dst.data()});
      });
      for (int64_t p = 0; p < pixels; ++p)
        for (int64_t c = 0; c < s.dst_stride(); ++c) {
          const float got = dst[size_t(p * s.dst_stride() + c)];
          if (c >= s.oc) {
            ASSERT_EQ(got, 77.0f) << "wrote past the slice";
            continue;
          }
          const double sum = reference(s, src, w, p / (s.oh() * s.ow()), p / s.ow() % s.oh(), p % s.ow(), c);
          const double want = trial::finish(e, sum, bias[size_t(c)], residual[size_t(p * s.residual_stride() + c)]);
          ASSERT_NEAR(got, want, 4e-6 * (1 + std::abs(want))) << "pixel " << p << " channel " << c;
        }
    }
}

}  // namespace
}  // namespace hone::cpu
