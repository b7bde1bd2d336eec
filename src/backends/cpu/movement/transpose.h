// SPDX-License-Identifier: Apache-2.0
//
// Tiles of a matrix of 32-bit elements, transposed in vectors. Elements are only moved: the result does not depend on the
// instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

/// to[i * to_step + j] = from[j * from_step + i] for `rows` rows j of `columns` elements i.
struct TransposeArgs {
  const uint32_t* from;
  int64_t from_step, rows, columns;
  uint32_t* to;
  int64_t to_step;
};
/// For an instruction set (at most the machine's).
void (*transpose_words(Isa isa))(const TransposeArgs&);

}  // namespace hone::cpu
