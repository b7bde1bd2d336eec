// SPDX-License-Identifier: Apache-2.0
//
// Softmax of one row of f64 in place, compiled for every instruction set by Highway.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

/// Rows have room for this many elements more.
inline constexpr int64_t kDoubleSlack = 8;

struct DoubleSoftmax {
  /// n > 0; the room behind the row is written.
  void (*softmax)(double* row, int64_t n);
  void (*log_softmax)(double* row, int64_t n);
};
DoubleSoftmax double_softmax_kernels(Isa isa);

}  // namespace hone::cpu
