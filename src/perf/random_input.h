// SPDX-License-Identifier: Apache-2.0
//
// Random values for an input of a plan.
#pragma once

#include "measured/random_values.h"
#include "runtime/engine.h"

namespace hone {

inline void fill_random(const IoTensor& input, const Dims& dims, std::span<std::byte> memory,
                        uint64_t seed = kRandomSeed) {
  RandomInput drawn{input.name, input.type.dtype, input.type.layout};
  if (input.range) drawn.range = {input.range->low, input.range->high};
  fill_random(drawn, dims, memory, seed);
}

}  // namespace hone
