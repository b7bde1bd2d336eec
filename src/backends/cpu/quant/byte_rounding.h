// SPDX-License-Identifier: Apache-2.0
//
// Floats rounded to steps of a byte's scale, each operation rounded as QuantizeLinear's meaning is.
#pragma once

#include <optional>

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
/// The same for integers that are narrowed with saturation behind the zero point: without a low end that it is at anyway.
StepBounds saturating(StepBounds bounds, const Quantization& type);
/// Whether an activation does nothing but clamp.
bool are_bounds(ActivationKind kind);

inline bool is_signed(const Quantization& type) { return type.dtype == DType::i8; }

/// Division by a byte's scale, exact where it counts: the quotient rounds to the integer that x / scale, itself rounded once, rounds
/// to, as long as that lies within a byte's 255 steps of 0. The scale is between 2^-30 and 2^30, x finite and moderate.
class StepQuotient {
 public:
  explicit StepQuotient(float scale);
  /// Clobbers `rest`; q, x and `rest` differ.
  void emit(Emitter& e, const Emitter::Vec& q, const Emitter::Vec& x, const Emitter::Vec& rest) const;

 private:
  bool agrees_at_each_step() const;
  float scale_, high_, low_;  // the reciprocal is high + low
  bool pair_;
};

/// Steps of a byte's scale plus another byte, in steps of a third: steps * of_steps + (byte * of_byte + constant) in two multiplications
/// with additions, where these round to what the five operations of the meaning do, for all 65,536 pairs.
struct StepSum {
  float of_steps = 0, of_byte = 0, constant = 0;
};
std::optional<StepSum> step_sum(const Quantization& steps, const Quantization& byte, const Quantization& result);
/// In `sum`; of steps and a byte that are floats.
void emit_step_sum(Emitter& e, const Emitter::Vec& sum, const Emitter::Vec& steps, const Emitter::Vec& byte,
                   const StepSum& factors);

/// The quotient between the bounds, of which those that are infinite are none.
void emit_clamped_steps(Emitter& e, const Emitter::Vec& q, const Emitter::Vec& x, const Emitter::Vec& rest,
                        const StepQuotient& quotient, const StepBounds& bounds);

}  // namespace hone::cpu
