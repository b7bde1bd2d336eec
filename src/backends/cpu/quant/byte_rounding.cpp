// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/quant/byte_rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone::cpu {
namespace {

bool is_power_of_two(float number) {
  int exponent = 0;
  return std::frexp(number, &exponent) == 0.5F;
}

/// The first quotient is off by less than two units in its last place; a step from its exact remainder brings it within one, and the
/// next to the nearest (Markstein).
void emit_nearest_quotient(Emitter& e, const Emitter::Vec& q, const Emitter::Vec& x, const Emitter::Vec& rest,
                           float scale) {
  const float reciprocal = 1 / scale;
  e.vmulps(q, x, e.constant(reciprocal));
  for (int step = 0; step < 2; ++step) {
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

StepBounds saturating(StepBounds bounds, const Quantization& type) {
  if (bounds.low <= step_bounds(type).low) bounds.low = -std::numeric_limits<float>::infinity();
  return bounds;
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

StepQuotient::StepQuotient(float scale)
    : scale_(scale), high_(1 / scale), low_(std::fma(-high_, scale, 1.0F) / scale), pair_(agrees_at_each_step()) {}

/// x (high + low) is off by 2^-47 before it is rounded: where x / scale is no closer to a step's end it falls to the same side.
/// Only floats right beside the ends can be closer, so that looking at those is a proof.
bool StepQuotient::agrees_at_each_step() const {
  constexpr int kSteps = 256, kNeighbours = 2;
  const float far = std::numeric_limits<float>::infinity();
  for (int step = 0; step < kSteps; ++step) {
    float x = (static_cast<float>(step) + 0.5F) * scale_;
    for (int i = 0; i < kNeighbours; ++i) x = std::nextafter(x, -far);
    for (int i = 0; i <= 2 * kNeighbours; ++i, x = std::nextafter(x, far))
      if (std::nearbyint(std::fma(x, high_, x * low_)) != std::nearbyint(x / scale_)) return false;
  }
  return true;
}

void StepQuotient::emit(Emitter& e, const Emitter::Vec& q, const Emitter::Vec& x, const Emitter::Vec& rest) const {
  if (is_power_of_two(scale_)) return e.vmulps(q, x, e.constant(high_));
  if (!pair_) return emit_nearest_quotient(e, q, x, rest, scale_);
  e.vmulps(q, x, e.constant(low_));
  e.vfmadd231ps(q, x, e.constant(high_));
}

void emit_clamped_steps(Emitter& e, const Emitter::Vec& q, const Emitter::Vec& x, const Emitter::Vec& rest,
                        const StepQuotient& quotient, const StepBounds& bounds) {
  quotient.emit(e, q, x, rest);
  if (std::isfinite(bounds.low)) e.vmaxps(q, q, e.constant(bounds.low));
  if (std::isfinite(bounds.high)) e.vminps(q, q, e.constant(bounds.high));
}

}  // namespace hone::cpu
