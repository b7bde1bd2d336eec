// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/quant/byte_rounding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace hone::cpu {
namespace {

constexpr float kFar = std::numeric_limits<float>::infinity();

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

/// All pairs of steps and a byte. Floats of these magnitudes are added and multiplied in double exactly, so that rounding once is
/// what a fused instruction does.
class StepSumSearch {
 public:
  StepSumSearch(const Quantization& steps, const Quantization& byte, const Quantization& result)
      : low_(static_cast<int>(step_bounds(steps).low)), low_byte_(is_signed(byte) ? -128 : 0) {
    const StepBounds bounds = step_bounds(result);
    low_end_ = bounds.low - 1, high_end_ = bounds.high + 1;
    for (int i = 0; i < kBytes; ++i)
      for (int j = 0; j < kBytes; ++j) {
        const float step = static_cast<float>(low_ + i) * steps.scale,
                    other = static_cast<float>(low_byte_ + j - byte.zero) * byte.scale,
                    quotient = (step + other) / result.scale;
        wanted_.push_back(std::clamp(std::nearbyint(quotient), low_end_, high_end_));
        if (std::abs(quotient - std::floor(quotient) - 0.5F) < kClose) close_.push_back({i, j});
      }
  }

  std::optional<StepSum> find(const StepSum& first) const {
    for (const int a : kAway)
      for (const int b : kAway)
        for (const int c : kAway) {
          const StepSum sum{away(first.of_steps, a), away(first.of_byte, b),
                            first.constant + static_cast<float>(c) * kConstantAway};
          if (agrees(sum)) return sum;
        }
    return std::nullopt;
  }

 private:
  static constexpr int kBytes = 256;
  static constexpr float kClose = 1e-3F;
  static constexpr int kAway[] = {0, 1, -1, 2, -2, 3, -3, 4, -4};
  static constexpr float kConstantAway = 0x1p-19F;

  static float away(float x, int ulps) {
    for (; ulps > 0; --ulps) x = std::nextafter(x, kFar);
    for (; ulps < 0; ++ulps) x = std::nextafter(x, -kFar);
    return x;
  }
  float at(const StepSum& sum, int i, int j) const {
    const auto inner = static_cast<float>(static_cast<double>(low_byte_ + j) * sum.of_byte + sum.constant);
    const auto steps = static_cast<float>(static_cast<double>(low_ + i) * sum.of_steps + inner);
    return std::clamp(std::nearbyint(steps), low_end_, high_end_);
  }
  bool agrees(const StepSum& sum) const {
    for (const auto& [i, j] : close_)
      if (at(sum, i, j) != wanted_[static_cast<size_t>(i * kBytes + j)]) return false;
    for (int i = 0; i < kBytes; ++i)
      for (int j = 0; j < kBytes; ++j)
        if (at(sum, i, j) != wanted_[static_cast<size_t>(i * kBytes + j)]) return false;
    return true;
  }

  int low_, low_byte_;
  float low_end_ = 0, high_end_ = 0;
  std::vector<float> wanted_;
  std::vector<std::array<int, 2>> close_;
};

}  // namespace

std::optional<StepSum> step_sum(const Quantization& steps, const Quantization& byte, const Quantization& result) {
  const float of_steps = steps.scale / result.scale, of_byte = byte.scale / result.scale;
  const auto is_moderate = [](float factor) { return factor > 0x1p-8F && factor < 0x1p6F; };
  if (!is_moderate(of_steps) || !is_moderate(of_byte)) return std::nullopt;
  return StepSumSearch(steps, byte, result).find({of_steps, of_byte, -static_cast<float>(byte.zero) * of_byte});
}

void emit_step_sum(Emitter& e, const Emitter::Vec& sum, const Emitter::Vec& steps, const Emitter::Vec& byte,
                   const StepSum& factors) {
  e.load_constant(sum, factors.constant);
  e.vfmadd231ps(sum, byte, e.constant(factors.of_byte));
  e.vfmadd231ps(sum, steps, e.constant(factors.of_steps));
}

StepBounds step_bounds(const Quantization& type) {
  const int64_t low = is_signed(type) ? -128 : 0;
  return {static_cast<float>(low - type.zero), static_cast<float>(low + 255 - type.zero)};
}

bool are_bounds(ActivationKind kind) {
  return kind == ActivationKind::relu || kind == ActivationKind::clip || kind == ActivationKind::none;
}

StepBounds saturating(StepBounds bounds, const Quantization& type) {
  if (bounds.low <= step_bounds(type).low) bounds.low = -kFar;
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
  for (int step = 0; step < kSteps; ++step) {
    float x = (static_cast<float>(step) + 0.5F) * scale_;
    for (int i = 0; i < kNeighbours; ++i) x = std::nextafter(x, -kFar);
    for (int i = 0; i <= 2 * kNeighbours; ++i, x = std::nextafter(x, kFar))
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
