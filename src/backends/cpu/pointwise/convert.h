// SPDX-License-Identifier: Apache-2.0
//
// Conversion of elements between any two numeric types, by the rules of Cast: integers narrow by dropping bits, floats
// towards integers truncate and saturate, not-a-number becomes 0, anything becomes a bool by being other than 0. Compiled
// for every instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"
#include "tensor/dtype.h"

namespace hone::cpu {

using ConvertElements = void (*)(const void* from, void* to, int64_t count);

/// The loop for a pair of types and an instruction set (at most the machine's). Neither type is a string.
ConvertElements convert_elements(DType from, DType to, Isa isa);

}  // namespace hone::cpu
