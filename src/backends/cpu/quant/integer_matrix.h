// SPDX-License-Identifier: Apache-2.0
//
// Integer sums on matrix tiles (AMX): 32 pixels by 32 columns at a time into a buffer, whose rows then go through the same end as
// sums in registers.
//
// Pixels whose windows lie at even distances are one row of tiles, also across the end of an image row: what is computed in between
// is dropped.
#pragma once

#include "backends/cpu/quant/integer_sums.h"

namespace hone::cpu {

/// Whether a group's channels are enough for tiles not to be mostly padding.
bool fills_matrix_tiles(const IntegerShape& shape);
bool is_matrix_config(const IntegerConfig& config);
/// Whether rows of sums can be ended in registers.
bool matrix_ends_fit(const EpilogueCode& epilogue, bool to_bytes);

std::shared_ptr<const CpuKernel> make_matrix_kernel(const IntegerShape& shape, const IntegerSums& sums,
                                                    const KernelShapes& shapes);

}  // namespace hone::cpu
