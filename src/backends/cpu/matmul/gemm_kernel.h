// SPDX-License-Identifier: Apache-2.0
//
// C[m, n] = epilogue(A[m, k] B[k, n]) in f32: the convolution's loop nest and register tiles, whose pixels are rows of A.
// B is packed (pack_gemm_weights) for constant weights. BatchedGemmKernel multiplies two activations: it takes B in place
// when its rows are contiguous in n, and packs it into the worker's scratch when it is transposed.
#pragma once

#include "backends/cpu/conv/conv_kernel.h"

namespace hone::cpu {

struct GemmShape {
  int64_t m = 1, n = 1, k = 1;
  int64_t lda = 0, ldc = 0, ld_residual = 0;  // elements between rows, 0 means dense
  bool operator==(const GemmShape&) const = default;
};

using GemmConfig = ConvConfig;  // pixels are rows of A

std::vector<GemmConfig> gemm_candidates(const GemmShape& shape, Isa isa, int workers);

struct GemmArgs {
  const float *a = nullptr, *b = nullptr, *bias = nullptr, *residual = nullptr;  // b and bias packed
  float* c = nullptr;
};

class GemmKernel {
 public:
  GemmKernel(const GemmShape& shape, const Epilogue& epilogue, const GemmConfig& config, Isa isa);
  void run(int worker, int workers, const GemmArgs& args) const noexcept {
    conv_.run(worker, workers, {args.a, args.b, args.bias, args.residual, args.c});
  }
  bool accumulates_in_dst() const { return conv_.accumulates_in_dst(); }

 private:
  ConvKernel conv_;
};

struct BatchedGemmShape {
  GemmShape matrix;
  int64_t ldb = 0;            // 0 means dense
  bool transposed_b = false;  // B is [n][k]
  // Two batch dimensions (image and head of attention), each with its own strides in elements; 0 repeats the operand.
  int64_t batch0 = 1, batch1 = 1;
  int64_t a_stride0 = 0, a_stride1 = 0, b_stride0 = 0, b_stride1 = 0, c_stride0 = 0, c_stride1 = 0;
  int64_t residual_stride0 = 0, residual_stride1 = 0;
  float scale = 1;  // multiplies the matmul, before the residual
};

struct BatchedGemmArgs {
  const float *a = nullptr, *b = nullptr, *residual = nullptr;
  float* c = nullptr;
  float* scratch = nullptr;  // workers * scratch_floats(), 64-byte aligned
};

std::vector<GemmConfig> batched_gemm_candidates(const BatchedGemmShape& shape, Isa isa, int workers);

class BatchedGemmKernel {
 public:
  /// Epilogue::bias is not offered here.
  BatchedGemmKernel(const BatchedGemmShape& shape, const Epilogue& epilogue, const GemmConfig& config, Isa isa);
  /// Scratch of one worker.
  size_t scratch_floats() const { return scratch_floats_; }
  /// One matrix, when B is transposed, for run_one().
  void pack(const float* b, float* scratch) const noexcept;
  void run(int worker, int workers, const BatchedGemmArgs& args) const noexcept;
  /// One matrix, by the calling worker alone; scratch holds pack(b) when B is transposed.
  void run_one(const BatchedGemmArgs& args) const noexcept;

 private:
  BatchedGemmShape shape_;
  int64_t panel_ = 0;
  size_t scratch_floats_ = 0;
  ConvKernel conv_;
};

}  // namespace hone::cpu
