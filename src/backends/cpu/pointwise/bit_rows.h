// SPDX-License-Identifier: Apache-2.0
//
// Bits of rows of bytes, whatever integers they are. Compiled for every instruction set by Highway.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

/// y of `bytes` bytes from a, and from b where there are two.
using BitRow = void (*)(const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t bytes);

struct BitRows {
  BitRow both, either, one, invert;
};

BitRows bit_rows(Isa isa);

}  // namespace hone::cpu
