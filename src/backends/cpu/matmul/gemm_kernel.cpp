// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/matmul/gemm_kernel.h"

#include <algorithm>

#include "backends/cpu/conv/pack.h"

namespace hone::cpu {
namespace {

ConvShape as_convolution(const GemmShape& g) {
  ConvShape s;
  s.ic = g.k;
  s.oc = g.n;
  s.iw = g.m;
  s.src_pixel_stride = g.lda;
  s.dst_pixel_stride = g.ldc;
  s.residual_pixel_stride = g.ld_residual;
  return s;
}

ConvKernel batched_conv(const BatchedGemmShape& b, Epilogue epilogue, GemmConfig config, Isa isa) {
  epilogue.bias = false;
  if (!b.transposed_b) epilogue.scale = b.scale;            // a packed B is scaled on the way
  if (b.transposed_b || b.scale != 1.0f) config.depth = 0;  // one packed block; one sum to scale
  const int64_t ldb = b.ldb ? b.ldb : b.matrix.n;
  return ConvKernel(as_convolution(b.matrix), epilogue, config, isa, {b.transposed_b ? 0 : ldb});
}

/// dst[k][panel] panels of scaled B, from B as [n][k]. Four by four with plain vectors: every x86-64 has them.
void pack_transposed(const float* b, int64_t n, int64_t k, int64_t ldb, int64_t panel, float scale, float* dst) {
  for (int64_t first = 0; first < n; first += panel) {
    const int64_t used = std::min(panel, n - first);
    for (int64_t row = 0; row < k; row += 4) {
      const int64_t rows = std::min<int64_t>(4, k - row);
      int64_t j = 0;
      using Vec4 [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]] = float;
      if (rows == 4) {
        for (; j + 4 <= used; j += 4) {
          const float* from = b + (first + j) * ldb + row;
          auto at = [&](int64_t i) { return *reinterpret_cast<const Vec4*>(from + i * ldb) * scale; };
          const auto r0 = at(0), r1 = at(1), r2 = at(2), r3 = at(3);
          const auto a = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), c = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
          const auto d = __builtin_shufflevector(r2, r3, 0, 4, 1, 5), e = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
          float* to = dst + row * panel + j;
          *reinterpret_cast<Vec4*>(to) = __builtin_shufflevector(a, d, 0, 1, 4, 5);
          *reinterpret_cast<Vec4*>(to + panel) = __builtin_shufflevector(a, d, 2, 3, 6, 7);
          *reinterpret_cast<Vec4*>(to + 2 * panel) = __builtin_shufflevector(c, e, 0, 1, 4, 5);
          *reinterpret_cast<Vec4*>(to + 3 * panel) = __builtin_shufflevector(c, e, 2, 3, 6, 7);
        }
      }
      for (; j < used; ++j)
        for (int64_t r = 0; r < rows; ++r) dst[(row + r) * panel + j] = b[(first + j) * ldb + row + r] * scale;
      for (int64_t r = 0; r < rows; ++r) std::fill(dst + (row + r) * panel + used, dst + (row + r + 1) * panel, 0.0f);
    }
    dst += k * panel;
  }
}

}  // namespace

GemmKernel::GemmKernel(const GemmShape& shape, const Epilogue& epilogue, const GemmConfig& config, Isa isa)
    : conv_(as_convolution(shape), epilogue, config, isa) {}

std::vector<GemmConfig> gemm_candidates(const GemmShape& shape, Isa isa, int workers) {
  return conv_candidates(as_convolution(shape), isa, workers);
}

BatchedGemmKernel::BatchedGemmKernel(const BatchedGemmShape& shape, const Epilogue& epilogue, const GemmConfig& config,
                                     Isa isa)
    : shape_(shape), panel_(config.panel_channels(isa)), conv_(batched_conv(shape, epilogue, config, isa)) {
  if (shape_.transposed_b) scratch_floats_ = packed_gemm_floats(shape.matrix.n, shape.matrix.k, panel_);
  scratch_floats_ = (scratch_floats_ + 15) / 16 * 16;
}

void BatchedGemmKernel::pack(const float* b, float* scratch) const noexcept {
  const BatchedGemmShape& s = shape_;
  pack_transposed(b, s.matrix.n, s.matrix.k, s.ldb ? s.ldb : s.matrix.k, panel_, s.scale, scratch);
}

void BatchedGemmKernel::run_one(const BatchedGemmArgs& args) const noexcept {
  conv_.run_all({args.a, shape_.transposed_b ? args.scratch : args.b, nullptr, args.residual, args.c});
}

void BatchedGemmKernel::run(int worker, int workers, const BatchedGemmArgs& args) const noexcept {
  const BatchedGemmShape& s = shape_;
  const int64_t per_matrix = conv_.blocks_ * conv_.strip_count();
  const int64_t items = s.batch0 * s.batch1 * per_matrix;
  const int64_t end = items * (worker + 1) / workers;
  const float* packed_from = nullptr;  // the matrix that lies in scratch
  for (int64_t item = items * worker / workers; item < end;) {
    const int64_t matrix = item / per_matrix, first = item % per_matrix;
    const int64_t count = std::min(end - item, per_matrix - first);
    const int64_t i0 = matrix / s.batch1, i1 = matrix % s.batch1;
    const float* b = args.b + i0 * s.b_stride0 + i1 * s.b_stride1;
    ConvArgs a;
    a.src = args.a + i0 * s.a_stride0 + i1 * s.a_stride1;
    a.dst = args.c + i0 * s.c_stride0 + i1 * s.c_stride1;
    if (args.residual) a.residual = args.residual + i0 * s.residual_stride0 + i1 * s.residual_stride1;
    a.weights = b;
    if (s.transposed_b) {
      float* scratch = args.scratch + size_t(worker) * scratch_floats_;
      if (packed_from != b) pack(b, scratch);
      packed_from = b;
      a.weights = scratch;
    }
    conv_.run_range(first, first + count, a);
    item += count;
  }
}

}  // namespace hone::cpu
