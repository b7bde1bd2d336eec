// SPDX-License-Identifier: Apache-2.0
//
// What the CPU offers to the array of backends: its tactic source and the loading of its kernels.
#pragma once

#include "backends/cpu/kernel.h"
#include "device/tactic.h"

namespace hone::cpu {

/// The source "cpu": Hone's own kernels, see tactic_table.h.
const TacticSource& source();
/// Throws Error when the code is damaged or needs instructions that the device lacks.
std::shared_ptr<const CpuKernel> load(const DeviceInfo& device, const Blob& code, const KernelShapes& shapes);
/// "cpu 1a2b3c4d", which changes with the version of any family.
std::string versions();

}  // namespace hone::cpu
