// SPDX-License-Identifier: Apache-2.0
//
// The tactic sources of this backend: "cuda" (Hone's own kernels), "cublaslt" and "cudnn". None of them needs a GPU to
// propose and compile kernels of its own; the libraries are asked what they can do on the GPU at hand.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/cuda/run/device.h"
#include "backends/cuda/run/kernel.h"
#include "device/tactic.h"

namespace hone::cuda {

const TacticSource& source();
const TacticSource& cublaslt_source();
const TacticSource& cudnn_source();

/// Bytes that the source of this name compiled to something launchable; null when there is no such source here.
std::shared_ptr<const CudaKernel> load(CudaDevice& device, std::string_view source, const Blob& code,
                                       const KernelShapes& shapes);

/// Changes whenever the generated kernels do.
std::string versions();

}  // namespace hone::cuda
