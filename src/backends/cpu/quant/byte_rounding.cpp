// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/quant/byte_rounding.h"

#include <algorithm>
#include <cmath>

namespace hone::cpu {
namespace {

bool is_power_of_two(float number) {
  int exponent = 0;
  return std::frexp(number, &exponent) == 0.5F;
}

/// The first quotient is off by less than two units in its last place; a step from its exact remainder brings it within one, and the
/// next to the nearest (Markstein).
void emit_quotient(Emitter& e, const Emitter::Vec& q, const Emitter::Vec& x, const Emitter::Vec& rest, float scale) {
  const float reciprocal = 1 / scale;
  e.vmulps(q, x, e.constant(reciprocal));
  for (int step = 0; step < 2 && !is_power_of_two(scale); ++step) {
    e.vmovaps(rest, x);
    e.vfnmadd231ps(rest, q, e.constant(scale));
    e.vfmadd231ps(q, rest, e.constant(reciprocal));
  }
}

}  // namespace

StepBounds step_bounds(const Quantization& type) {
  const int64_t low = is_signed(type) ? -128 : 0;
  return {static_cast<float>(low - type.zero), static_cast<float>(low + 255 - type.zero)};
}

bool are_bounds(ActivationKind kind) {
  return kind == ActivationKind::relu || kind == ActivationKind::clip || kind == ActivationKind::none;
}

/// Rounding a quotient keeps the order, so that clamping before the division is clamping behind it.
StepBounds step_bounds_behind(const Activation& activation, const Quantization& type) {
  const StepBounds all = step_bounds(type);
  const auto within = [&](float number) { return std::clamp(number, all.low, all.high); };
  if (activation.kind == ActivationKind::relu) return {within(0), all.high};
  if (activation.kind == ActivationKind::clip)
    return {within(activation.alpha / type.scale), within(activation.beta / type.scale)};
  return all;
}

void emit_clamped_steps(Emitter& e, const Emitter::Vec& q, const Emitter::Vec& x, const Emitter::Vec& rest, float scale,
                        const StepBounds& bounds) {
  emit_quotient(e, q, x, rest, scale);
  e.vmaxps(q, q, e.constant(bounds.low));
  e.vminps(q, q, e.constant(bounds.high));
}

}  // namespace hone::cpu
