// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/conv/conv_kernel.h"

#include <gtest/gtest.h>

#include "backends/cpu/conv/pack.h"
#include "backends/cpu/jit/kernel_testing.h"
#include "backends/cpu/jit/tile_code.h"

namespace hone::cpu {
namespace {

using trial::Guarded;
using trial::Random;

constexpr float kGuard = 12345.0f;

ConvShape random_shape(Random& r) {
  ConvShape s;
  s.n = r.integer(1, 2);
  s.groups = r.coin(0.75) ? 1 : r.integer(2, 3);
  s.ic = s.groups * r.integer(1, r.coin(0.2) ? 90 : 20);
  s.oc = s.groups * r.integer(1, r.coin(0.3) ? 150 : 40);
  s.kh = r.pick({1, 1, 2, 3, 3, 5});
  s.kw = r.pick({1, 1, 2, 3, 3, 7, 12, 30});
  s.stride_h = r.integer(1, 3);
  s.stride_w = r.integer(1, 3);
  s.dilation_h = r.coin(0.7) ? 1 : r.integer(2, 4);
  s.dilation_w = r.coin(0.7) ? 1 : r.integer(2, 4);
  if (r.coin(0.3)) s.kh = s.kw = s.stride_h = s.stride_w = 1;
  s.pad_top = r.integer(0, 3);
  s.pad_bottom = r.integer(0, 3);
  s.pad_left = r.integer(0, 3);
  s.pad_right = r.integer(0, 3);
  if (r.coin(0.3)) s.pad_top = s.pad_bottom = s.pad_left = s.pad_right = 0;
  s.ih = r.integer(1, 9) + std::max<int64_t>(0, s.dilation_h * (s.kh - 1) - s.pad_top - s.pad_bottom);
  s.iw =
      r.integer(1, r.coin(0.3) ? 40 : 12) + std::max<int64_t>(0, s.dilation_w * (s.kw - 1) - s.pad_left - s.pad_right);
  s.src_layout = r.coin(0.8) ? SrcLayout::nhwc : SrcLayout::nchw;
  if (s.src_layout == SrcLayout::nhwc && r.coin(0.3)) s.src_pixel_stride = s.ic + r.integer(0, 9);
  if (r.coin(0.3)) s.dst_pixel_stride = s.oc + r.integer(0, 9);
  if (r.coin(0.3)) s.residual_pixel_stride = s.oc + r.integer(0, 9);
  return s;
}

ConvConfig random_config(Random& r, Isa isa) {
  ConvConfig c;
  do {
    c.vectors = int(r.integer(1, 8));
    c.pixels = int(r.integer(1, 28));
  } while (!tile_fits(isa, c.pixels, c.vectors));
  c.depth = r.coin(0.7) ? 0 : int(r.integer(1, 40));
  c.panels = int(r.integer(0, 3));
  c.prefetch = r.coin();
  return c;
}

double reference(const ConvShape& s, const std::vector<float>& src, const std::vector<float>& w, int64_t n, int64_t oy,
                 int64_t ox, int64_t o) {
  const int64_t group = o / s.group_oc();
  double sum = 0;
  for (int64_t ky = 0; ky < s.kh; ++ky)
    for (int64_t kx = 0; kx < s.kw; ++kx) {
      const int64_t y = oy * s.stride_h - s.pad_top + ky * s.dilation_h,
                    x = ox * s.stride_w - s.pad_left + kx * s.dilation_w;
      if (y < 0 || y >= s.ih || x < 0 || x >= s.iw) continue;
      for (int64_t i = 0; i < s.group_ic(); ++i) {
        const int64_t c = group * s.group_ic() + i;
        const int64_t at = s.src_layout == SrcLayout::nhwc ? ((n * s.ih + y) * s.iw + x) * s.src_stride() + c
                                                           : ((n * s.ic + c) * s.ih + y) * s.iw + x;
        sum += double(src[size_t(at)]) * double(w[size_t(((o * s.group_ic() + i) * s.kh + ky) * s.kw + kx)]);
      }
    }
  return sum;
}

std::string describe(const ConvShape& s, const ConvConfig& c, const Epilogue& e, Isa isa) {
  std::string text(to_string(isa));
  for (int64_t v : {s.n,
                    s.ic,
                    s.ih,
                    s.iw,
                    s.oc,
                    s.kh,
                    s.kw,
                    s.stride_h,
                    s.stride_w,
                    s.dilation_h,
                    s.dilation_w,
                    s.pad_top,
                    s.pad_left,
                    s.pad_bottom,
                    s.pad_right,
                    s.groups,
                    int64_t(s.src_layout),
                    s.src_pixel_stride,
                    s.dst_pixel_stride,
                    s.residual_pixel_stride})
    text += " " + std::to_string(v);
  text += " config";
  for (int v : {c.pixels, c.vectors, c.depth, c.panels}) text += " " + std::to_string(v);
  return text + " epilogue " + std::to_string(e.bias) + std::to_string(e.residual) +
         std::to_string(e.residual_after_activation) + " act " + std::to_string(int(e.activation.kind));
}

void check(const ConvShape& s, const ConvConfig& config, const Epilogue& e, Isa isa, int workers, Random& r) {
  SCOPED_TRACE(describe(s, config, e, isa));
  const int64_t pixels = s.n * s.oh() * s.ow();
  const int64_t panel = config.panel_channels(isa);
  const auto src = r.floats(size_t(s.n * s.ih * s.iw * s.src_stride()));
  const auto w =
      r.floats(size_t(s.oc * s.group_ic() * s.kh * s.kw), 1.0f / std::sqrt(float(s.group_ic() * s.kh * s.kw)));
  const auto bias = r.floats(size_t(s.oc));
  const auto residual = r.floats(size_t(pixels * s.residual_stride()));
  std::vector<float> packed(packed_conv_floats(s, panel)), packed_bias(packed_bias_floats(s.oc, s.groups, panel));
  pack_conv_weights(w.data(), s, panel, config.depth, packed.data());
  pack_bias(bias.data(), s.oc, s.groups, panel, packed_bias.data());
  const bool at_end = r.coin();
  const Guarded dst(std::vector<float>(size_t(pixels * s.dst_stride()), kGuard), at_end), guarded_src(src, at_end),
      guarded_packed(packed, at_end);
  const Guarded guarded_bias(packed_bias, at_end), guarded_residual(residual, at_end);

  const ConvKernel kernel(s, e, config, isa);
  trial::on_team(workers, [&](int worker, int count) {
    kernel.run(worker, count,
               {guarded_src.data(), guarded_packed.data(), guarded_bias.data(), guarded_residual.data(), dst.data()});
  });
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t o = 0; o < s.oc; ++o) {
      const double sum = reference(s, src, w, p / (s.oh() * s.ow()), p / s.ow() % s.oh(), p % s.ow(), o);
      const double want = trial::finish(e, sum, bias[size_t(o)], residual[size_t(p * s.residual_stride() + o)]);
      ASSERT_NEAR(dst[size_t(p * s.dst_stride() + o)], want, 4e-6 * (1 + std::abs(want)))
          << "pixel " << p << " channel " << o;
    }
    for (int64_t o = s.oc; o < s.dst_stride(); ++o)
      ASSERT_EQ(dst[size_t(p * s.dst_stride() + o)], kGuard) << "wrote past the slice at pixel " << p;
  }
}

TEST(ConvKernel, AgreesWithNaiveLoopsOnRandomProblems) {
  for (Isa isa : trial::machine_isas())
    for (uint64_t i = 0; i < 700; ++i) {
      const uint64_t seed = trial::test_seed() + i;
      SCOPED_TRACE("HONE_TEST_SEED=" + std::to_string(seed));
      Random r(seed);
      const ConvShape s = random_shape(r);
      Epilogue e = r.epilogue();
      if (s.src_layout == SrcLayout::nchw) e.residual = r.coin();
      check(s, random_config(r, isa), e, isa, int(r.integer(1, 3)), r);
      if (HasFatalFailure()) return;
    }
}

TEST(ConvKernel, CandidatesAreRightOnShapesOfKnownNetworks) {
  std::vector<ConvShape> shapes;
  const auto add = [&](int64_t ic, int64_t hw, int64_t oc, int64_t k, int64_t stride) {
    ConvShape s;
    s.ic = ic, s.ih = s.iw = hw, s.oc = oc, s.kh = s.kw = k, s.stride_h = s.stride_w = stride;
    s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = k / 2;
    shapes.push_back(s);
  };
  add(3, 30, 64, 7, 2), add(64, 28, 64, 3, 1), add(256, 7, 128, 3, 1), add(64, 14, 256, 1, 1), add(256, 14, 64, 1, 2),
      add(40, 7, 240, 1, 1);
  Random r(trial::test_seed());
  for (Isa isa : trial::machine_isas())
    for (const ConvShape& s : shapes)
      for (const ConvConfig& c : conv_candidates(s, isa, 2)) {
        check(s, c, {.bias = true, .activation = {ActivationKind::relu}}, isa, 2, r);
        if (HasFatalFailure()) return;
      }
}

TEST(ConvKernel, ResidualMayLieInTheOutputUnlessTheKernelSaysOtherwise) {
  Random r(trial::test_seed());
  ConvShape s;
  s.ic = 12, s.ih = 5, s.iw = 11, s.oc = 21, s.kh = s.kw = 3, s.pad_left = s.pad_top = s.pad_right = s.pad_bottom = 1;
  int in_place = 0;
  for (Isa isa : trial::machine_isas())
    for (int i = 0; i < 60; ++i) {
      const ConvConfig config = random_config(r, isa);
      Epilogue e = r.epilogue();
      e.bias = false;
      e.residual = true;
      const ConvKernel kernel(s, e, config, isa);
      if (kernel.accumulates_in_dst()) continue;
      ++in_place;
      const auto src = r.floats(size_t(s.ih * s.iw * s.ic)), w = r.floats(size_t(s.oc * s.ic * 9), 0.1f),
                 residual = r.floats(size_t(s.oh() * s.ow() * s.oc));
      std::vector<float> packed(packed_conv_floats(s, config.panel_channels(isa))), apart(residual.size()),
          together = residual;
      pack_conv_weights(w.data(), s, config.panel_channels(isa), config.depth, packed.data());
      kernel.run(0, 1, {src.data(), packed.data(), nullptr, residual.data(), apart.data()});
      kernel.run(0, 1, {src.data(), packed.data(), nullptr, together.data(), together.data()});
      ASSERT_EQ(apart, together) << describe(s, config, e, isa);
    }
  EXPECT_GT(in_place, 20);
}

TEST(ConvKernel, AnyNumberOfWorkersCoversTheOutputOnce) {
  Random r(trial::test_seed());
  ConvShape s;
  s.ic = 5, s.ih = 6, s.iw = 9, s.oc = 37, s.kh = s.kw = 3, s.pad_left = s.pad_top = 1;
  for (int workers = 1; workers <= 9; ++workers)
    check(s, {.pixels = 4, .vectors = 1}, {.bias = true, .activation = {}}, trial::machine_isas().back(), workers, r);
}

}  // namespace
}  // namespace hone::cpu
