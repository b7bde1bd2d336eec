// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/jit/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "backends/cpu/jit/kernel_testing.h"

namespace hone::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// Applies a one-argument function to whole vectors of `values`.
std::vector<float> apply(Isa isa, std::vector<float> values, const std::function<void(Emitter&, VectorMath&)>& body) {
  const size_t count = values.size();
  values.resize((count + 15) / 16 * 16, 1.0f);
  Emitter e(isa);
  VectorMath math(e);
  Xbyak::Label loop;
  e.L(loop);
  e.load(e.vec(0), e.ptr[e.rdi]);
  body(e, math);
  e.store(e.ptr[e.rdi], e.vec(0));
  e.add(e.rdi, e.vector_bytes());
  e.sub(e.rsi, e.lanes());
  e.jnz(loop);
  e.vzeroupper();
  e.ret();
  e.finish();
  e.entry<void (*)(float*, size_t)>(0)(values.data(), values.size());
  values.resize(count);
  return values;
}

double ulp_error(float got, double want) {
  const float rounded = float(want);
  if (got == rounded || (std::isnan(got) && std::isnan(want))) return 0;
  if (!std::isfinite(rounded) || !std::isfinite(got)) return 1e9;
  const double ulp = double(std::nextafter(std::abs(rounded), kInf)) - double(std::abs(rounded));
  return std::abs(double(got) - want) / ulp;
}

/// Every 1009th float between the bounds, both signs of zero, and the bounds.
std::vector<float> sweep(float low, float high) {
  std::vector<float> values{low, high, 0.0f, -0.0f};
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 10007) {
    const float v = std::bit_cast<float>(uint32_t(bits));
    if (v >= low && v <= high) values.push_back(v);
  }
  return values;
}

void expect_accurate(const char* name, float low, float high, double ulps,
                     const std::function<void(Emitter&, VectorMath&)>& body, double (*truth)(double)) {
  const auto x = sweep(low, high);
  for (Isa isa : trial::machine_isas()) {
    const auto y = apply(isa, x, body);
    double worst = 0;
    float where = 0;
    for (size_t i = 0; i < x.size(); ++i)
      if (const double error = ulp_error(y[i], truth(double(x[i]))); error > worst) worst = error, where = x[i];
    EXPECT_LE(worst, ulps) << name << " on " << to_string(isa) << " at " << where;
  }
}

TEST(VectorMath, ExpIsAccurateOverItsWholeRange) {
  // Subnormal results are rounded twice by AVX2's two scalings, so the sweep stops at the smallest normal result here.
  expect_accurate(
      "exp", -87.3f, kInf, 2, [](Emitter& e, VectorMath& m) { m.exp(e.vec(0), e.vec(1), e.vec(2)); },
      [](double x) { return std::exp(x); });
}

TEST(VectorMath, Exp2IsAccurateOverItsWholeRange) {
  expect_accurate(
      "exp2", -126.0f, kInf, 3, [](Emitter& e, VectorMath& m) { m.exp2(e.vec(0), e.vec(1), e.vec(2)); },
      [](double x) { return std::exp2(x); });
  for (Isa isa : trial::machine_isas()) {
    const auto y = apply(isa, {-140.0f, -160.0f, -std::numeric_limits<float>::max(), -kInf, kInf, NAN},
                         [](Emitter& e, VectorMath& m) { m.exp2(e.vec(0), e.vec(1), e.vec(2)); });
    EXPECT_NEAR(y[0], std::exp2(-140.0), 3e-45);
    for (size_t i : {1, 2, 3}) EXPECT_EQ(y[i], 0.0f) << i;
    EXPECT_EQ(y[4], kInf);
    EXPECT_TRUE(std::isnan(y[5]));
  }
}

TEST(VectorMath, ExpUnderflowsGradually) {
  for (Isa isa : trial::machine_isas()) {
    const auto y = apply(isa, {-90.0f, -100.0f, -110.0f, -kInf},
                         [](Emitter& e, VectorMath& m) { m.exp(e.vec(0), e.vec(1), e.vec(2)); });
    EXPECT_NEAR(y[0], std::exp(-90.0), 3e-45);
    EXPECT_NEAR(y[1], std::exp(-100.0), 3e-45);
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_EQ(y[3], 0.0f);
  }
}

TEST(VectorMath, LogIsAccurateForEveryPositiveNumber) {
  expect_accurate(
      "log", -kInf, kInf, 3, [](Emitter& e, VectorMath& m) { m.log(e.vec(0), e.vec(1), e.vec(2), e.vec(3)); },
      [](double x) { return std::log(x); });
}

TEST(VectorMath, TanhIsAccurate) {
  expect_accurate(
      "tanh", -kInf, kInf, 5, [](Emitter& e, VectorMath& m) { m.tanh(e.vec(0), e.vec(1), e.vec(2)); },
      [](double x) { return std::tanh(x); });
}

TEST(VectorMath, ErfIsAccurate) {
  expect_accurate(
      "erf", -kInf, kInf, 5, [](Emitter& e, VectorMath& m) { m.erf(e.vec(0), e.vec(1), e.vec(2)); },
      [](double x) { return std::erf(x); });
}

TEST(VectorMath, SigmoidIsAccurate) {
  expect_accurate(
      "sigmoid", -87.0f, kInf, 4, [](Emitter& e, VectorMath& m) { m.sigmoid(e.vec(0), e.vec(1), e.vec(2)); },
      [](double x) { return 1 / (1 + std::exp(-x)); });
}

TEST(VectorMath, EveryActivationFollowsItsDefinition) {
  const auto x = sweep(-30.0f, 30.0f);
  for (Isa isa : trial::machine_isas())
    for (int kind = 0; kind <= int(ActivationKind::gelu_tanh); ++kind) {
      const Activation a{ActivationKind(kind), -0.3f, 0.7f};
      const auto y =
          apply(isa, x, [&](Emitter& e, VectorMath& m) { m.activation(a, e.vec(0), e.vec(1), e.vec(2), e.vec(3)); });
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(y[i], activate(a, double(x[i])), 1e-6 * (std::abs(double(x[i])) + 0.1))
            << "kind " << kind << " at " << x[i] << " on " << to_string(isa);
    }
}

TEST(VectorMath, NotANumberStaysNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (Isa isa : trial::machine_isas())
    for (int kind = 0; kind <= int(ActivationKind::gelu_tanh); ++kind) {
      const auto y = apply(isa, {nan}, [&](Emitter& e, VectorMath& m) {
        m.activation({ActivationKind(kind), 0.1f, 0.7f}, e.vec(0), e.vec(1), e.vec(2), e.vec(3));
      });
      EXPECT_TRUE(std::isnan(y[0])) << "kind " << kind << " on " << to_string(isa);
    }
}

}  // namespace
}  // namespace hone::cpu
