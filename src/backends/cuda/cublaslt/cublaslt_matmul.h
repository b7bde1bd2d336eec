// SPDX-License-Identifier: Apache-2.0
//
// One matmul as cuBLASLt describes it. The library thinks in columns: a row-major C[m,n] = A[m,k] B[k,n] is its column-major
// C'[n,m] = B' A', so the region's right operand is the library's first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/run/libraries.h"
#include "device/device.h"
#include "regions/epilogue.h"

namespace hone::cuda {

/// A matmul with sizes known, and what is done to its result.
struct MatmulShape {
  int64_t m = 1, n = 1, k = 1, batch = 1;
  int64_t step_a = 0, step_b = 0, step_c = 0;  // elements from one matmul of a batch to the next; 0: shared
  bool transposed_b = false;                   // B lies as [n,k]
  DType dtype = DType::f32;                    // of E4M3 the result is f16, and B has to be transposed
  bool tf32 = false;                           // operands of f32 matmuls may be rounded
  float scale = 1;
  bool bias = false, residual = false;  // one value per column; a whole matrix
  ActivationKind activation = ActivationKind::none;
};

/// The library's descriptors of a matmul, and calls with them.
class Matmul {
 public:
  explicit Matmul(const MatmulShape& shape);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  /// The library's best guesses first; empty when it cannot do this matmul at all.
  std::vector<cublasLtMatmulHeuristicResult_t> heuristics(cublasLtHandle_t handle, size_t workspace, int count) const;
  /// Workspace of an algorithm for these sizes, or nothing when it does not serve them.
  std::optional<size_t> workspace_of(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) const;
  void run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b,
           const void* bias, const void* residual, void* c, void* workspace, size_t workspace_bytes,
           CUstream stream) const;

 private:
  void set(cublasLtMatmulDescAttributes_t which, const void* value, size_t size) const;

  MatmulShape shape_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
};

/// Whether the library does that to a result while it is in registers.
bool has_epilogue(const EpilogueCode& epilogue, DType dtype);

}  // namespace hone::cuda
