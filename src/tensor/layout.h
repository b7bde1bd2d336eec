// SPDX-License-Identifier: Apache-2.0
//
// Plain conversion of a tensor between layouts; obvious loops for checks and for weights at build time, not for speed.
#pragma once

#include "tensor/tensor.h"

namespace hone {

/// Copies `source` (these dims, layout `from`) to `target` (layout `to`); padding of blocked layouts becomes zero.
void convert_layout(const std::byte* source, std::byte* target, DType dtype, std::span<const int64_t> dims, Layout from,
                    Layout to);

}  // namespace hone
