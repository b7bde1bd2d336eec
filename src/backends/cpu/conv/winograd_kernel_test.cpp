// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/conv/winograd_kernel.h"

#include <gtest/gtest.h>

#include "backends/cpu/conv/pack.h"
#include "backends/cpu/jit/kernel_testing.h"

namespace hone::cpu {
namespace {

using trial::Guarded;
using trial::Random;

double reference(const ConvShape& s, const std::vector<float>& src, const std::vector<float>& w, int64_t n, int64_t oy,
                 int64_t ox, int64_t o) {
  double sum = 0;
  for (int64_t ky = 0; ky < 3; ++ky)
    for (int64_t kx = 0; kx < 3; ++kx) {
      const int64_t y = oy - s.pad_top + ky, x = ox - s.pad_left + kx;
      if (y < 0 || y >= s.ih || x < 0 || x >= s.iw) continue;
      for (int64_t c = 0; c < s.ic; ++c)
        sum += double(src[size_t(((n * s.ih + y) * s.iw + x) * s.src_stride() + c)]) *
               double(w[size_t(((o * s.ic + c) * 3 + ky) * 3 + kx)]);
    }
  return sum;
}

/// Relative error in the Euclidean norm, after checking that nothing outside of the output was written.
double run_and_compare(const ConvShape& s, const Epilogue& e, const WinogradConfig& config, Isa isa, int team,
                       Random& r) {
  const int64_t pixels = s.n * s.oh() * s.ow(), panel = config.panel_channels(isa);
  const auto src = r.floats(size_t(s.n * s.ih * s.iw * s.src_stride()));
  const auto w = r.floats(size_t(s.oc * s.ic * 9), 1.0f / std::sqrt(float(9 * s.ic))), bias = r.floats(size_t(s.oc));
  const auto residual = r.floats(size_t(pixels * s.residual_stride()));
  std::vector<float> packed(packed_winograd_floats(s, config, panel)), packed_bias(packed_bias_floats(s.oc, 1, panel));
  pack_winograd_weights(w.data(), s, config, panel, packed.data());
  pack_bias(bias.data(), s.oc, 1, panel, packed_bias.data());
  const bool at_end = r.coin();
  const Guarded dst(std::vector<float>(size_t(pixels * s.dst_stride()), 77.0f), at_end), guarded_src(src, at_end),
      guarded_packed(packed, at_end);
  const Guarded guarded_bias(packed_bias, at_end), guarded_residual(residual, at_end);
  const WinogradKernel kernel(s, e, config, isa);
  const Guarded scratch(std::vector<float>(kernel.scratch_floats() * size_t(team), std::nanf("")), at_end);
  trial::on_team(team, [&](int worker, int workers) {
    kernel.run(worker, workers,
               {guarded_src.data(), guarded_packed.data(), guarded_bias.data(), guarded_residual.data(), dst.data()},
               scratch.data());
  });
  double error = 0, norm = 1e-30;
  for (int64_t p = 0; p < pixels; ++p)
    for (int64_t o = 0; o < s.dst_stride(); ++o) {
      const float got = dst[size_t(p * s.dst_stride() + o)];
      if (o >= s.oc) {
        EXPECT_EQ(got, 77.0f) << "wrote past the slice";
        continue;
      }
      const double sum = reference(s, src, w, p / (s.oh() * s.ow()), p / s.ow() % s.oh(), p % s.ow(), o);
      const double want = trial::finish(e, sum, bias[size_t(o)], residual[size_t(p * s.residual_stride() + o)]);
      EXPECT_FALSE(std::isnan(got));
      error += (double(got) - want) * (double(got) - want);
      norm += want * want;
    }
  return std::sqrt(error / norm);
}

TEST(WinogradKernel, AgreesWithNaiveLoopsOnRandomProblems) {
  for (Isa isa : trial::machine_isas())
    for (uint64_t i = 0; i < 200; ++i) {
      const uint64_t seed = trial::test_seed() + i;
      SCOPED_TRACE("HONE_TEST_SEED=" + std::to_string(seed) + " on " + std::string(to_string(isa)));
      Random r(seed);
      ConvShape s;
      s.n = r.integer(1, 2), s.ic = r.integer(1, 40), s.oc = r.integer(1, 80), s.kh = s.kw = 3;
      s.pad_top = r.integer(0, 3), s.pad_left = r.integer(0, 3), s.pad_bottom = r.integer(0, 3),
      s.pad_right = r.integer(0, 3);
      s.ih = r.integer(3, 15), s.iw = r.integer(3, 15);
      if (r.coin(0.3)) s.src_pixel_stride = s.ic + r.integer(0, 9);
      if (r.coin(0.3)) s.dst_pixel_stride = s.oc + r.integer(0, 9);
      if (r.coin(0.3)) s.residual_pixel_stride = s.oc + r.integer(0, 9);
      WinogradConfig c;
      c.output = r.pick({2, 4, 6});
      c.tiles = int(r.integer(1, 20));
      c.panels = int(r.integer(0, 3));
      c.vectors = int(r.integer(1, isa == Isa::avx512 ? 4 : 3));
      c.pixels = int(r.integer(1, isa == Isa::avx512 ? 7 : 4));
      EXPECT_LT(run_and_compare(s, r.epilogue(), c, isa, int(r.integer(1, 4)), r), 1e-5);
      if (HasFailure()) return;
    }
}

TEST(WinogradKernel, CandidatesStayWithinTheToleranceOfF32) {
  ConvShape s;
  s.ic = 256, s.oc = 40, s.ih = s.iw = 14, s.kh = s.kw = 3, s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = 1;
  for (Isa isa : trial::machine_isas())
    for (const WinogradConfig& c : winograd_candidates(s, isa, 2)) {
      Random r(trial::test_seed());
      const double error = run_and_compare(s, {}, c, isa, 2, r);
      RecordProperty("F" + std::to_string(c.output) + "_" + std::string(to_string(isa)), std::to_string(error));
      EXPECT_LT(error, c.output == 2 ? 1e-6 : c.output == 4 ? 3e-6 : 1e-5) << "F(" << c.output << ", 3)";
    }
}

}  // namespace
}  // namespace hone::cpu
