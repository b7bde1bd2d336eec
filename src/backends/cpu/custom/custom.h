// SPDX-License-Identifier: Apache-2.0
//
// The source "custom" of a processor: operators that the program brought, on memory as it lies, without copies.
#pragma once

#include "backends/cpu/kernel.h"
#include "device/tactic.h"

namespace hone::cpu {

const TacticSource& custom_source();
/// Throws Error where the operator is not there or has no function for memory of the host.
std::shared_ptr<const CpuKernel> load_custom(const DeviceInfo& device, const Blob& code, const KernelShapes& shapes);

}  // namespace hone::cpu
