// SPDX-License-Identifier: Apache-2.0
//
// The source "cublaslt": matmuls (Linear, MatMul, Conv of single pixels) with what the library can do to a result while it is in registers:
// + bias, + residual, an activation; what else there is to do, a pass of ours does (finish.h). Its heuristic's list is offered; the tuner times it.
#pragma once

#include <memory>

#include "backends/cuda/run/device.h"
#include "backends/cuda/run/kernel.h"

namespace hone::cuda {

/// Goes up with every change of what a plan keeps of a matmul.
inline constexpr int kMatmulVersion = 4;

std::shared_ptr<const CudaKernel> load_cublaslt(CudaDevice& device, const Blob& code, const KernelShapes& shapes);

}  // namespace hone::cuda
