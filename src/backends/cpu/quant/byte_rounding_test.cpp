// SPDX-License-Identifier: Apache-2.0
//
// Quotients that become bytes, beside the ends of every step, where a quotient that is off by an ulp gives another byte.
#include "backends/cpu/quant/byte_rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/jit/kernel_testing.h"
#include "backends/cpu/quant/quantize_loops.h"

namespace hone::cpu {
namespace {

using trial::Random;

constexpr int64_t kSteps = 255;
constexpr int kNeighbours = 3;
constexpr float kFar = std::numeric_limits<float>::infinity();

/// A vector's steps of a byte, as floats.
using Steps = void (*)(const float* x, float* steps);

std::unique_ptr<Emitter> steps_code(Isa isa, float scale, const StepBounds& bounds) {
  return Emitter::generate(isa, [&](Emitter& e) {
    const StepQuotient quotient(scale);
    e.load(e.vec(0), e.ptr[e.rdi]);
    emit_clamped_steps(e, e.vec(1), e.vec(0), e.vec(2), quotient, bounds);
    e.round_to_nearest(e.vec(1));
    e.store(e.ptr[e.rsi], e.vec(1));
    e.vzeroupper();
    e.ret();
  });
}

/// Floats around the ends of all steps, whole vectors of them.
std::vector<float> beside_steps(float scale, int lanes) {
  std::vector<float> all;
  for (int64_t step = -kSteps - 1; step <= kSteps; ++step) {
    float x = (static_cast<float>(step) + 0.5F) * scale;
    for (int i = 0; i < kNeighbours; ++i) x = std::nextafter(x, -kFar);
    for (int i = 0; i <= 2 * kNeighbours; ++i, x = std::nextafter(x, kFar)) all.push_back(x);
  }
  while (all.size() % static_cast<size_t>(lanes) != 0) all.push_back(0);
  return all;
}

void check(Isa isa, float scale) {
  const StepBounds bounds{-static_cast<float>(kSteps), static_cast<float>(kSteps)};
  const auto code = steps_code(isa, scale, bounds);
  const auto steps = code->entry<Steps>(0);
  const std::vector<float> all = beside_steps(scale, lanes_of(isa));
  std::vector<float> found(all.size());
  for (size_t i = 0; i < all.size(); i += static_cast<size_t>(lanes_of(isa))) steps(&all[i], &found[i]);
  for (size_t i = 0; i < all.size(); ++i)
    ASSERT_EQ(found[i], std::clamp(std::nearbyint(all[i] / scale), bounds.low, bounds.high))
        << all[i] << " / " << scale << " " << to_string(isa);
}

TEST(ByteRounding, QuotientsFallToTheSideOfAStepOnWhichTheyLie) {
  Random random(trial::test_seed());
  for (const Isa isa : trial::machine_isas()) {
    for (const float scale : {0.25F, 3.0F, 0x1p-30F, 0x1p30F, 0x1.fffffep-9F, 0x1.000002p-6F, 0.1F}) check(isa, scale);
    for (int i = 0; i < 60; ++i)
      check(isa, std::ldexp(random.floats(1)[0] + 1.5F, static_cast<int>(random.integer(-25, 25))));
  }
}

TEST(ByteRounding, SaturationReplacesALowEndThatIsTheTypesOwn) {
  const Quantization type{DType::u8, 0.5F, 3};
  EXPECT_EQ(step_bounds(type).low, -3);
  EXPECT_EQ(saturating(step_bounds(type), type).low, -kFar);
  EXPECT_EQ(saturating({0, 252}, type).low, 0);
}

template <typename T>
void check_loop(void (*quantize)(const float*, T*, int64_t, float, float), float scale, int64_t zero) {
  std::vector<float> all = beside_steps(scale, 1);
  for (const float x : {kFar, -kFar, std::numeric_limits<float>::quiet_NaN(), 0x1p120F, -0x1p120F, 0x1p-140F})
    all.push_back(x);
  std::vector<T> found(all.size());
  quantize(all.data(), found.data(), static_cast<int64_t>(all.size()), scale, static_cast<float>(zero));
  constexpr float kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  for (size_t i = 0; i < all.size(); ++i) {
    const float steps = std::nearbyint(all[i] / scale) + static_cast<float>(zero);
    ASSERT_EQ(static_cast<float>(found[i]), std::isnan(steps) ? 0 : std::clamp(steps, kLow, kHigh))
        << all[i] << " / " << scale;
  }
}

TEST(ByteRounding, LoopsOverTensorsDivideExactly) {
  Random random(trial::test_seed());
  for (const Isa isa : trial::machine_isas())
    for (int i = 0; i < 24; ++i) {
      const float scale = i == 0   ? 0.1F
                          : i == 1 ? 0x1p-40F
                          : i == 2 ? 0.0F
                                   : std::ldexp(random.floats(1)[0] + 1.5F, static_cast<int>(random.integer(-25, 25)));
      check_loop(quantize_loops(isa).to_u8, scale, random.integer(0, 255));
      check_loop(quantize_loops(isa).to_i8, scale, random.integer(-128, 127));
    }
}

/// A vector's sums of steps and bytes, as floats.
using Sums = void (*)(const float* steps, const float* bytes, float* sums);

std::unique_ptr<Emitter> sums_code(Isa isa, const StepSum& factors) {
  return Emitter::generate(isa, [&](Emitter& e) {
    e.load(e.vec(0), e.ptr[e.rdi]);
    e.load(e.vec(1), e.ptr[e.rsi]);
    emit_step_sum(e, e.vec(2), e.vec(0), e.vec(1), factors);
    e.round_to_nearest(e.vec(2));
    e.store(e.ptr[e.rdx], e.vec(2));
    e.vzeroupper();
    e.ret();
  });
}

/// All pairs. Whether there are such factors.
bool check_sums(Isa isa, const Quantization& steps, const Quantization& byte, const Quantization& result) {
  const std::optional<StepSum> factors = step_sum(steps, byte, result);
  if (!factors) return false;
  const auto code = sums_code(isa, *factors);
  const auto run = code->entry<Sums>(0);
  const StepBounds bounds = step_bounds(result);
  const float low_byte = is_signed(byte) ? -128 : 0;
  const auto lanes = static_cast<size_t>(lanes_of(isa));
  std::vector<float> bytes(256), same(lanes), found(256);
  for (size_t j = 0; j < bytes.size(); ++j) bytes[j] = low_byte + static_cast<float>(j);
  for (float step = step_bounds(steps).low; step <= step_bounds(steps).high; ++step) {
    std::ranges::fill(same, step);
    for (size_t j = 0; j < bytes.size(); j += lanes) run(same.data(), &bytes[j], &found[j]);
    for (size_t j = 0; j < bytes.size(); ++j) {
      const float sum = step * steps.scale + (bytes[j] - static_cast<float>(byte.zero)) * byte.scale;
      EXPECT_EQ(std::clamp(found[j], bounds.low, bounds.high),
                std::clamp(std::nearbyint(sum / result.scale), bounds.low, bounds.high))
          << step << " of " << steps.scale << " and " << bytes[j] << " of " << byte.scale << " " << to_string(isa);
    }
  }
  return true;
}

TEST(ByteRounding, StepsAndAByteAreSummedAsTheirMeaningIsForAllPairs) {
  Random random(trial::test_seed());
  const auto scale = [&] { return std::ldexp(random.floats(1)[0] + 1.5F, static_cast<int>(random.integer(-7, -4))); };
  const auto type = [&]() -> Quantization {
    const bool is_signed = random.integer(0, 1) == 1;
    return {is_signed ? DType::i8 : DType::u8, scale(), random.integer(0, 255) - (is_signed ? 128 : 0)};
  };
  int found = 0;
  for (const Isa isa : trial::machine_isas()) {
    if (isa == Isa::scalar) continue;
    for (int i = 0; i < 12; ++i) found += check_sums(isa, type(), type(), type()) ? 1 : 0;
    check_sums(isa, {DType::u8, 0.5F, 0}, {DType::u8, 0.25F, 255}, {DType::i8, 0.5F, -128});  // with ties
  }
  EXPECT_GT(found, 0);
  EXPECT_FALSE(step_sum({DType::u8, 1, 0}, {DType::u8, 1, 0}, {DType::u8, 0x1p-20F, 0}));
}

}  // namespace
}  // namespace hone::cpu
