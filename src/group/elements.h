// SPDX-License-Identifier: Apache-2.0
//
// Two ranks' elements made one, as transports want it: functions of plain memory. Floats of 16 bits are added as f32 and rounded.
#pragma once

#include <cstddef>

#include "tensor/collective.h"

namespace hone {

using ReduceFunction = void (*)(void* to, const void* a, const void* b, size_t elements);

/// Of `avg` that of the sum. Throws Error for types that cannot be reduced.
ReduceFunction reduce_function(ReduceKind kind, DType dtype);
/// Makes an average of a sum.
void divide(void* data, size_t elements, DType dtype, int by);

}  // namespace hone
