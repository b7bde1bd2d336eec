// SPDX-License-Identifier: Apache-2.0
//
// The source "custom" of a GPU: operators that the program brought. "device" calls its function with pointers and the stream,
// "kernel" launches what NVRTC makes of its source text. What has neither the reference runs on the host, on copies.
#pragma once

#include <string>

#include "backends/cuda/run/device.h"
#include "backends/cuda/run/kernel.h"
#include "device/tactic.h"

namespace hone::cuda {

const TacticSource& custom_source();
/// Throws Error where the operator is not there or is not what the plan says.
std::shared_ptr<const CudaKernel> load_custom(CudaDevice& device, const Blob& code, const KernelShapes& shapes);
/// What NVRTC is given for the region's operator: Hone's element types in namespace hone, the operands' types, the node's numbers
/// and the struct hone_sizes, then the program's text.
std::string custom_text(const Graph& region);

}  // namespace hone::cuda
