// SPDX-License-Identifier: Apache-2.0
//
// What the processor does at best: fused multiply-adds on registers, and a copy too large for the caches, by all workers at
// once. A tenth of a second.
#pragma once

#include "backends/cpu/jit/isa.h"
#include "device/device.h"

namespace hone::cpu {

/// f32 matmuls; there are none of f16. The rate of arithmetic stays 0 on Isa::scalar.
Ceilings measure_ceilings(Device& device, Isa isa, int workers);

}  // namespace hone::cpu
