// SPDX-License-Identifier: Apache-2.0
//
// Vectors whose halves are rotated against each other, f32 or bf16, compiled for every instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

/// `count` vectors of two halves: y = x * cosines + (-second half, first half) * sines. Steps are in elements, from vector to vector.
template <typename T>
struct RotaryArgs {
  const T *x, *cosines, *sines;
  T* y;
  int64_t count, half, step, angle_step;
};

/// The kernel for an instruction set (at most the machine's); T is float or BFloat.
template <typename T>
using RotaryKernel = void (*)(const RotaryArgs<T>&);
template <typename T>
RotaryKernel<T> rotary_kernel(Isa isa);

}  // namespace hone::cpu
