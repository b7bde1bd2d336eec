// SPDX-License-Identifier: Apache-2.0
//
// A region that makes a byte of a byte, whatever happens to it as a float on the way: a table of 256 bytes says all of it, and
// says it exactly, since the region's own meaning fills it in.
#pragma once

#include "ir/graph.h"

namespace hone {

/// From one tensor of bytes through pointwise nodes with numbers alone to bytes of the same shape, quantised and dequantised by known
/// scales.
bool is_byte_table(const Graph& region);
/// What each byte becomes; bytes of i8 count as they lie in memory.
Tensor byte_table(const Graph& region);

}  // namespace hone
