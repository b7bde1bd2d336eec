// SPDX-License-Identifier: Apache-2.0
//
// The tactic source "onednn": convolution, matmuls and recurrent layers of the oneDNN library, for what it does
// better than Hone's own kernels. Compiled out with HONE_WITH_ONEDNN=OFF.
#pragma once

#include <string>

#include "backends/cpu/kernel.h"
#include "device/tactic.h"

#if HONE_WITH_ONEDNN
namespace hone::cpu {

const TacticSource& onednn_source();
std::shared_ptr<const CpuKernel> load_onednn(const DeviceInfo& device, const Blob& code, const KernelShapes& shapes);
/// "onednn 3.2.0 5e6f7a8b": the library, and the families of it.
std::string onednn_version();

}  // namespace hone::cpu
#endif
