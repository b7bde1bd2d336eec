// SPDX-License-Identifier: Apache-2.0
//
// What inputs hold where nobody gave values: drawn with a fixed seed, the same in every run.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/engine.h"

namespace hone {

inline constexpr uint64_t kRandomSeed = 2024;

/// Integers from the input's range where the plan gives one; else floats in [-1, 1]; bool, int32 and int64 0 or 1; int8 and
/// uint8 their whole range.
/// Values depend on the tensor's name and the seed alone. Padding of blocked layouts is zero.
void fill_random(const IoTensor& input, const Dims& dims, std::span<std::byte> memory, uint64_t seed = kRandomSeed);

}  // namespace hone
