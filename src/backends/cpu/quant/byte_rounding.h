// SPDX-License-Identifier: Apache-2.0
//
// Floats rounded to steps of a byte's scale, each operation rounded as QuantizeLinear's meaning is.
#pragma once

#include "backends/cpu/jit/emitter.h"
#include "regions/epilogue.h"

namespace hone::cpu {

/// Between which steps, counted from the zero point, a byte lies.
struct StepBounds {
  float low, high;
};
StepBounds step_bounds(const Quantization& type);
/// With what an activation right before leaves of them. For activations that are_bounds().
StepBounds step_bounds_behind(const Activation& activation, const Quantization& type);
/// Whether an activation does nothing but clamp.
bool are_bounds(ActivationKind kind);

inline bool is_signed(const Quantization& type) { return type.dtype == DType::i8; }

/// q = x / scale, rounded once and clamped, still a float; clobbers `rest`. The scale is between 2^-30 and 2^30, x finite and moderate.
void emit_clamped_steps(Emitter& e, const Emitter::Vec& q, const Emitter::Vec& x, const Emitter::Vec& rest, float scale,
                        const StepBounds& bounds);

}  // namespace hone::cpu
