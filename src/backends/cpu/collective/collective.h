// SPDX-License-Identifier: Apache-2.0
//
// The source "gloo" of a processor: collectives on memory as it lies, through the device's group.
#pragma once

#include "backends/cpu/kernel.h"
#include "device/group.h"
#include "device/tactic.h"

namespace hone::cpu {

const TacticSource& collective_source();
/// Throws Error without a group, and where it does not fit.
std::shared_ptr<const CpuKernel> load_collective(std::shared_ptr<Group> group, const Blob& code,
                                                 const KernelShapes& shapes);

}  // namespace hone::cpu
