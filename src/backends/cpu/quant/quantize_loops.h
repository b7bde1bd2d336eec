// SPDX-License-Identifier: Apache-2.0
//
// What quantising f32 to bytes and back does to many elements, in vectors of each instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

/// The least and the largest of 0 and the elements; a NaN is passed over.
struct Range {
  float low = 0, high = 0;
};

struct QuantizeLoops {
  Range (*range)(const float* x, int64_t count);
  /// y = round(x / scale) + zero, to even, saturated.
  void (*to_u8)(const float* x, uint8_t* y, int64_t count, float scale, float zero);
  void (*to_i8)(const float* x, int8_t* y, int64_t count, float scale, float zero);
  /// y = (x - zero) * scale.
  void (*from_u8)(const uint8_t* x, float* y, int64_t count, float scale, float zero);
  void (*from_i8)(const int8_t* x, float* y, int64_t count, float scale, float zero);
};
QuantizeLoops quantize_loops(Isa isa);

}  // namespace hone::cpu
