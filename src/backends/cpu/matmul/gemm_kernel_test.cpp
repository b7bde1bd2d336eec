// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/matmul/gemm_kernel.h"

#include <gtest/gtest.h>

#include "backends/cpu/conv/pack.h"
#include "backends/cpu/jit/kernel_testing.h"
#include "backends/cpu/jit/tile_code.h"

namespace hone::cpu {
namespace {

using trial::Guarded;
using trial::Random;

GemmConfig random_config(Random& r, Isa isa) {
  GemmConfig c;
  do {
    c.vectors = int(r.integer(1, 6));
    c.pixels = int(r.integer(1, 14));
  } while (!tile_fits(isa, c.pixels, c.vectors + 1));
  c.depth = r.coin(0.7) ? 0 : int(r.integer(1, 60));
  c.panels = int(r.integer(0, 3));
  return c;
}

GemmShape random_shape(Random& r) {
  GemmShape g{r.integer(1, 60), r.integer(1, r.coin(0.3) ? 200 : 40), r.integer(1, 130)};
  if (r.coin(0.3)) g.lda = g.k + r.integer(0, 9);
  if (r.coin(0.3)) g.ldc = g.n + r.integer(0, 9);
  if (r.coin(0.3)) g.ld_residual = g.n + r.integer(0, 9);
  return g;
}

int64_t lda(const GemmShape& g) { return g.lda ? g.lda : g.k; }
int64_t ldc(const GemmShape& g) { return g.ldc ? g.ldc : g.n; }
int64_t ldr(const GemmShape& g) { return g.ld_residual ? g.ld_residual : g.n; }

TEST(GemmKernel, AgreesWithNaiveLoopsForBothOrdersOfB) {
  for (Isa isa : trial::machine_isas())
    for (uint64_t i = 0; i < 400; ++i) {
      const uint64_t seed = trial::test_seed() + i;
      SCOPED_TRACE("HONE_TEST_SEED=" + std::to_string(seed) + " on " + std::string(to_string(isa)));
      Random r(seed);
      const GemmShape g = random_shape(r);
      const Epilogue e = r.epilogue();
      const GemmConfig config = r.coin() ? random_config(r, isa) : gemm_candidates(g, isa, 2).front();
      const bool transposed = r.coin();
      const int64_t panel = config.panel_channels(isa), ldb = (transposed ? g.k : g.n) + r.integer(0, 5);
      const auto a = r.floats(size_t(g.m * lda(g))),
                 b = r.floats(size_t(ldb * (transposed ? g.n : g.k)), 1.0f / std::sqrt(float(g.k)));
      const auto bias = r.floats(size_t(g.n)), residual = r.floats(size_t(g.m * ldr(g)));
      std::vector<float> packed(packed_gemm_floats(g.n, g.k, panel)), packed_bias(packed_bias_floats(g.n, 1, panel));
      pack_gemm_weights(b.data(), g.n, g.k, ldb, transposed, panel, config.depth, packed.data());
      pack_bias(bias.data(), g.n, 1, panel, packed_bias.data());
      const bool at_end = r.coin();
      const Guarded c(std::vector<float>(size_t(g.m * ldc(g)), 77.0f), at_end), guarded_a(a, at_end),
          guarded_packed(packed, at_end);
      const Guarded guarded_bias(packed_bias, at_end), guarded_residual(residual, at_end);
      const GemmKernel kernel(g, e, config, isa);
      trial::on_team(int(r.integer(1, 3)), [&](int worker, int workers) {
        kernel.run(worker, workers,
                   {guarded_a.data(), guarded_packed.data(), guarded_bias.data(), guarded_residual.data(), c.data()});
      });
      for (int64_t m = 0; m < g.m; ++m)
        for (int64_t n = 0; n < ldc(g); ++n) {
          if (n >= g.n) {
            ASSERT_EQ(c[size_t(m * ldc(g) + n)], 77.0f);
            continue;
          }
          double sum = 0;
          for (int64_t k = 0; k < g.k; ++k)
            sum += double(a[size_t(m * lda(g) + k)]) *
                   double(transposed ? b[size_t(n * ldb + k)] : b[size_t(k * ldb + n)]);
          const double want = trial::finish(e, sum, bias[size_t(n)], residual[size_t(m * ldr(g) + n)]);
          ASSERT_NEAR(c[size_t(m * ldc(g) + n)], want, 4e-6 * (1 + std::abs(want))) << m << "," << n;
        }
    }
}

TEST(BatchedGemmKernel, AgreesWithNaiveLoopsWithHeadsInterleaved) {
  for (Isa isa : trial::machine_isas())
    for (uint64_t i = 0; i < 300; ++i) {
      const uint64_t seed = trial::test_seed() + i;
      SCOPED_TRACE("HONE_TEST_SEED=" + std::to_string(seed) + " on " + std::string(to_string(isa)));
      Random r(seed);
      BatchedGemmShape s;
      GemmShape& g = s.matrix;
      g = {r.integer(1, 30), r.integer(1, 70), r.integer(1, 40)};
      s.batch0 = r.integer(1, 3), s.batch1 = r.integer(1, 4);
      s.transposed_b = r.coin();
      s.scale = r.coin() ? 1.0f : 0.37f;
      // Heads lie side by side within a row, as attention has them.
      const int64_t b_rows = s.transposed_b ? g.n : g.k, b_columns = s.transposed_b ? g.k : g.n;
      g.lda = s.batch1 * g.k, s.ldb = s.batch1 * b_columns, g.ldc = s.batch1 * g.n, g.ld_residual = g.n;
      s.a_stride0 = g.m * g.lda, s.a_stride1 = g.k;
      s.b_stride0 = r.coin() ? b_rows * s.ldb : 0, s.b_stride1 = b_columns;
      s.c_stride0 = g.m * g.ldc, s.c_stride1 = g.n;
      s.residual_stride0 = g.m * g.n, s.residual_stride1 = 0;
      Epilogue e = r.epilogue();
      e.bias = false;
      const auto a = r.floats(size_t(s.batch0 * s.a_stride0)),
                 b = r.floats(size_t(s.batch0 * b_rows * s.ldb), 1.0f / std::sqrt(float(g.k)));
      const auto residual = r.floats(size_t(s.batch0 * s.residual_stride0));
      const bool at_end = r.coin();
      const Guarded c(std::vector<float>(size_t(s.batch0 * s.c_stride0), 77.0f), at_end), guarded_a(a, at_end),
          guarded_b(b, at_end), guarded_residual(residual, at_end);
      const GemmConfig config = r.coin() ? random_config(r, isa) : batched_gemm_candidates(s, isa, 2).front();
      const BatchedGemmKernel kernel(s, e, config, isa);
      const int team = int(r.integer(1, 3));
      std::vector<float> scratch(kernel.scratch_floats() * size_t(team));
      trial::on_team(team, [&](int worker, int workers) {
        kernel.run(worker, workers,
                   {guarded_a.data(), guarded_b.data(), guarded_residual.data(), c.data(), scratch.data()});
      });
      Epilogue scaled = e;
      scaled.scale = s.scale;
      for (int64_t i0 = 0; i0 < s.batch0; ++i0)
        for (int64_t i1 = 0; i1 < s.batch1; ++i1)
          for (int64_t m = 0; m < g.m; ++m)
            for (int64_t n = 0; n < g.n; ++n) {
              double sum = 0;
              for (int64_t k = 0; k < g.k; ++k) {
                const int64_t at = s.transposed_b ? n * s.ldb + k : k * s.ldb + n;
                sum += double(a[size_t(i0 * s.a_stride0 + i1 * s.a_stride1 + m * g.lda + k)]) *
                       double(b[size_t(i0 * s.b_stride0 + i1 * s.b_stride1 + at)]);
              }
              const double want =
                  trial::finish(scaled, sum, 0, residual[size_t(i0 * s.residual_stride0 + m * g.n + n)]);
              ASSERT_NEAR(c[size_t(i0 * s.c_stride0 + i1 * s.c_stride1 + m * g.ldc + n)], want,
                          4e-6 * (1 + std::abs(want)));
            }
    }
}

}  // namespace
}  // namespace hone::cpu
