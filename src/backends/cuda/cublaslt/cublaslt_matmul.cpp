// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/cublaslt/cublaslt_matmul.h"

#include <array>

#include "base/error.h"

namespace hone::cuda {
namespace {

cudaDataType data_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDA_R_32F;
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f8e4m3fn: return CUDA_R_8F_E4M3;
    default: throw InternalError(fmt::format("cuBLASLt multiplies no {}", name_of(dtype)));
  }
}

/// Rows of bytes as the library's columns: `rows` elements lie next to each other.
cublasLtMatrixLayout_t make_layout(DType dtype, int64_t rows, int64_t columns, int64_t batch, int64_t step) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublaslt().cublasLtMatrixLayoutCreate(&layout, data_type(dtype), static_cast<uint64_t>(rows),
                                              static_cast<uint64_t>(columns), rows),
        "describing a matrix");
  if (batch > 1) {
    const auto count = static_cast<int32_t>(batch);
    check(cublaslt().cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
          "describing a matrix");
    check(cublaslt().cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                                      sizeof step),
          "describing a matrix");
  }
  return layout;
}

std::optional<cublasLtEpilogue_t> epilogue_of(bool bias, ActivationKind activation) {
  switch (activation) {
    case ActivationKind::none: return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case ActivationKind::relu: return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case ActivationKind::gelu:
    case ActivationKind::gelu_tanh: return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default: return std::nullopt;
  }
}

constexpr size_t kAlignment = 16;  // of all pointers: the arena's is larger, and so is a matrix's first element

}  // namespace

bool has_epilogue(const EpilogueCode& epilogue, DType dtype) {
  const ActivationKind activation = epilogue.activation.kind;
  if (!epilogue_of(true, activation)) return false;
  if (epilogue.residual_after_activation && activation != ActivationKind::none) return false;
  // The library knows the approximation by tanh alone; it differs from the other by less than 16 bits can hold.
  return activation != ActivationKind::gelu || dtype != DType::f32;
}

Matmul::Matmul(const MatmulShape& shape) : shape_(shape) {
  const cublasComputeType_t compute =
      shape.dtype == DType::f32 && shape.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(cublaslt().cublasLtMatmulDescCreate(&operation_, compute, CUDA_R_32F), "describing a matmul");
  const cublasOperation_t first = shape.transposed_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
  const cublasLtEpilogue_t epilogue = *epilogue_of(shape.bias, shape.activation);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  if (shape.bias) {
    const cudaDataType type = data_type(shape.dtype);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
  }
  a_ = shape.transposed_b ? make_layout(shape.dtype, shape.k, shape.n, shape.batch, shape.step_b)
                          : make_layout(shape.dtype, shape.n, shape.k, shape.batch, shape.step_b);
  b_ = make_layout(shape.dtype, shape.k, shape.m, shape.batch, shape.step_a);
  c_ = make_layout(shape.dtype == DType::f8e4m3fn ? DType::f16 : shape.dtype, shape.n, shape.m, shape.batch,
                   shape.step_c);
}

Matmul::~Matmul() {
  for (const cublasLtMatrixLayout_t layout : {a_, b_, c_})
    if (layout != nullptr) cublaslt().cublasLtMatrixLayoutDestroy(layout);
  if (operation_ != nullptr) cublaslt().cublasLtMatmulDescDestroy(operation_);
}

void Matmul::set(cublasLtMatmulDescAttributes_t which, const void* value, size_t size) const {
  check(cublaslt().cublasLtMatmulDescSetAttribute(operation_, which, value, size), "describing a matmul");
}

std::vector<cublasLtMatmulHeuristicResult_t> Matmul::heuristics(cublasLtHandle_t handle, size_t workspace,
                                                                int count) const {
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublaslt().cublasLtMatmulPreferenceCreate(&preference), "asking for algorithms");
  const auto alignment = static_cast<uint32_t>(kAlignment);
  const std::array kAlignments{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (const cublasLtMatmulPreferenceAttributes_t which : kAlignments)
    cublaslt().cublasLtMatmulPreferenceSetAttribute(preference, which, &alignment, sizeof alignment);
  cublaslt().cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                  sizeof workspace);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(count));
  int found = 0;
  const cublasStatus_t status = cublaslt().cublasLtMatmulAlgoGetHeuristic(handle, operation_, a_, b_, c_, c_,
                                                                          preference, count, results.data(), &found);
  cublaslt().cublasLtMatmulPreferenceDestroy(preference);
  results.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<size_t>(found) : 0);
  std::erase_if(results,
                [](const cublasLtMatmulHeuristicResult_t& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
  return results;
}

std::optional<size_t> Matmul::workspace_of(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) const {
  cublasLtMatmulHeuristicResult_t result{};
  if (cublaslt().cublasLtMatmulAlgoCheck(handle, operation_, a_, b_, c_, c_, &algorithm, &result) !=
      CUBLAS_STATUS_SUCCESS)
    return std::nullopt;
  return result.workspaceSize;
}

void Matmul::run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b,
                 const void* bias, const void* residual, void* c, void* workspace, size_t workspace_bytes,
                 CUstream stream) const {
  // The descriptor holds the bias pointer: a copy of it belongs to this call alone.
  cublasLtMatmulDescOpaque_t copy = *operation_;
  if (shape_.bias)
    check(cublaslt().cublasLtMatmulDescSetAttribute(&copy, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias),
          "setting a bias");
  const float alpha = shape_.scale, beta = shape_.residual ? 1.0f : 0.0f;
  check(cublaslt().cublasLtMatmul(handle, &copy, &alpha, b, a_, a, b_, &beta, shape_.residual ? residual : c, c_, c, c_,
                                  &algorithm, workspace, workspace_bytes, stream),
        "multiplying matrices");
}

}  // namespace hone::cuda
