// SPDX-License-Identifier: Apache-2.0
//
// What a formula's operations do to a block of elements behind each other, compiled for every instruction set. A domain is what the
// numbers of a whole formula are held in: the narrowest that gives what the reference gives, which calculates in f64 and i64.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"
#include "ir/expr.h"

namespace hone::cpu {

enum class Domain : uint8_t { f32, f64, i32, i64, truth };  // truth: bytes that hold 0 or 1

/// d[i] = operation(a[i], b[i], c[i]). Operands that the operation does not have are not read; d may be one of the others.
using BlockLoop = void (*)(const void* a, const void* b, const void* c, void* d, int64_t count);

/// Null where there is none.
BlockLoop block_loop(ExprKind kind, Domain domain, Isa isa);

}  // namespace hone::cpu
