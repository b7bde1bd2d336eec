// SPDX-License-Identifier: Apache-2.0
//
// What is done to many bytes before they are multiplied, in vectors of each instruction set. `flip` is 0x80 where signed bytes become
// unsigned ones or the other way round, else 0.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

struct IntegerLoops {
  /// The sum of x ^ flip, unsigned.
  uint32_t (*sum)(const uint8_t* x, int64_t count, uint8_t flip);
  /// sums[i] += x[i] ^ flip, unsigned.
  void (*add)(const uint8_t* x, int64_t count, uint8_t flip, uint32_t* sums);
  void (*copy)(const uint8_t* x, int64_t count, uint8_t flip, uint8_t* to);
  void (*widen_u8)(const uint8_t* x, int64_t count, int16_t* to);
  void (*widen_i8)(const uint8_t* x, int64_t count, int16_t* to);
  /// A step of each column: the bytes of four rows; the words, sign-extended behind the flip, of two.
  void (*join_bytes)(const uint8_t* const* rows, int64_t count, uint8_t flip, uint32_t* to);
  void (*join_words)(const uint8_t* const* rows, int64_t count, uint8_t flip, uint32_t* to);
};
IntegerLoops integer_loops(Isa isa);

}  // namespace hone::cpu
