// SPDX-License-Identifier: Apache-2.0
//
// The source "cudnn": convolutions with bias, residual and activation, and attention, as operation graphs of the library. Its heuristics'
// engines are offered with their settings written out, so a tactic is a value and a plan needs no second search.
#pragma once

#include <memory>

#include "backends/cuda/run/device.h"
#include "backends/cuda/run/kernel.h"

namespace hone::cuda {

/// Goes up with every change of what a plan keeps of a convolution.
inline constexpr int kConvolutionVersion = 2;

std::shared_ptr<const CudaKernel> load_cudnn(CudaDevice& device, const Blob& code, const KernelShapes& shapes);

}  // namespace hone::cuda
