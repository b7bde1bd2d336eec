// SPDX-License-Identifier: Apache-2.0
//
// The source "nccl" of a GPU: collectives in the stream, through communicators of the device's group.
#pragma once

#include "backends/cuda/run/device.h"
#include "backends/cuda/run/kernel.h"
#include "device/tactic.h"

namespace hone::cuda {

const TacticSource& collective_source();
/// Throws Error without a group or without NCCL, and where the group does not fit.
std::shared_ptr<const CudaKernel> load_collective(CudaDevice& device, const Blob& code, const KernelShapes& shapes);

}  // namespace hone::cuda
