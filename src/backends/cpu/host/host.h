// SPDX-License-Identifier: Apache-2.0
//
// The source "host" of a processor: single operators that find out in a run how large their results are (Range, ConstantOfShape, Unique,
// windows), or that refuse what they read (MaxUnpool). No kernel of the source "cpu" can: those work in parallel and never throw.
#pragma once

#include "backends/cpu/kernel.h"
#include "device/tactic.h"

namespace hone::cpu {

const TacticSource& host_source();
/// Throws Error on a code that the source does not write.
std::shared_ptr<const CpuKernel> load_host(const Blob& code, const KernelShapes& shapes);

}  // namespace hone::cpu
