// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/eval_for_test.h"

namespace hone {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Pointwise, AddBroadcastsLikeNumpy) {
  expect_near(run_op("Add", {counted({2, 1}), counted({3}, 10)}), {2, 3}, {10, 11, 12, 11, 12, 13});
}

TEST(Pointwise, IntegerDivisionTruncatesAndModFloors) {
  EXPECT_THAT(run_op("Div", {integers({7, -7}), integers({2, 2})}).integers(), testing::ElementsAre(3, -3));
  EXPECT_THAT(run_op("Mod", {integers({7, -7}), integers({3, 3})}).integers(), testing::ElementsAre(1, 2));
  EXPECT_THAT(run_op("Fmod", {integers({7, -7}), integers({3, 3})}).integers(), testing::ElementsAre(1, -1));
}

TEST(Pointwise, RoundGoesToEven) {
  expect_near(run_op("Round", {floats({4}, {0.5F, 1.5F, -2.5F, 2.4F})}), {4}, {0, 2, -2, 2});
}

TEST(Pointwise, ActivationsStayFiniteFarOut) {
  for (const char* op :
       {"Softplus", "Mish", "Sigmoid", "Silu", "Tanh", "Gelu", "GeluTanh", "Elu", "Celu", "Selu", "HardSwish"})
    for (const double value : values_of(run_op(op, {floats({2}, {-300, 300})})))
      EXPECT_TRUE(std::isfinite(value)) << op;
}

TEST(Pointwise, GeluFormsDifferAsPublished) {
  expect_near(run_op("Gelu", {floats({2}, {1, -2})}), {2}, {0.8413447, -0.0455003});
  expect_near(run_op("GeluTanh", {floats({2}, {1, -2})}), {2}, {0.8411920, -0.0454023});
  expect_near(run_op("Gelu", {floats({1}, {1})}, {{"approximate", std::string("tanh")}}), {1}, {0.8411920});
}

TEST(Pointwise, ClampAndClipAgree) {
  expect_near(run_op("Clamp", {floats({3}, {-1, 3, 9})}, {{"min", 0.0}, {"max", 6.0}}), {3}, {0, 3, 6});
  expect_near(run_op("Clip", {floats({3}, {-1, 3, 9}), Tensor::scalar(0.0F), Tensor::scalar(6.0F)}), {3}, {0, 3, 6});
}

TEST(Pointwise, ComparisonsGiveTruthValues) {
  const Tensor result = run_op("LessOrEqual", {counted({3}), floats({}, {1})});
  EXPECT_EQ(result.dtype(), DType::boolean);
  EXPECT_THAT(values_of(result), testing::ElementsAre(1, 1, 0));
}

TEST(Pointwise, IsInfTellsTheSignsApart) {
  const Tensor x = floats({3}, {kInfinity, -kInfinity, 1});
  EXPECT_THAT(values_of(run_op("IsInf", {x}, {{"detect_negative", int64_t{0}}})), testing::ElementsAre(1, 0, 0));
  EXPECT_THAT(values_of(run_op("IsInf", {x}, {{"detect_positive", int64_t{0}}})), testing::ElementsAre(0, 1, 0));
}

TEST(Pointwise, WhereTakesTheTypeOfItsChoices) {
  const Tensor result =
      run_op("Where", {Tensor::of<bool>({2}, {true, false}), floats({2}, {1, 2}), floats({2}, {3, 4})});
  expect_near(result, {2}, {1, 4});
}

TEST(Cast, FloatsTruncateTowardsZeroAndSaturate) {
  const Tensor x = floats({4}, {-1.9F, 1.9F, 1e9F, std::nanf("")});
  EXPECT_THAT(values_of(run_op("Cast", {x}, {{"to", std::string("i8")}})), testing::ElementsAre(-1, 1, 127, 0));
}

TEST(Cast, IntegersNarrowByDroppingBits) {
  EXPECT_THAT(values_of(run_op("Cast", {integers({257, -1})}, {{"to", std::string("u8")}})),
              testing::ElementsAre(1, 255));
}

TEST(Cast, AnythingButZeroIsTrue) {
  EXPECT_THAT(values_of(run_op("Cast", {floats({3}, {0, 0.5F, -2})}, {{"to", std::string("bool")}})),
              testing::ElementsAre(0, 1, 1));
}

TEST(Bits, ShiftsBeyondTheWidthGiveZero) {
  const Tensor x = Tensor::of<uint8_t>({3}, {1, 128, 255}), by = Tensor::of<uint8_t>({3}, {1, 1, 9});
  EXPECT_THAT(values_of(run_op("BitShift", {x, by}, {{"direction", std::string("LEFT")}})),
              testing::ElementsAre(2, 0, 0));
}

TEST(Pointwise, IntegersThatComeFromFloatsSaturate) {
  EXPECT_EQ(run_op("Pow", {integers({10}), floats({1}, {30})}).integer(0), INT64_MAX);
}

TEST(Quantize, RoundsToEvenAndSaturates) {
  const Tensor y =
      run_op("QuantizeLinear", {floats({4}, {1, 3, 1000, -1000}), Tensor::scalar(2.0F), Tensor::scalar<uint8_t>(128)});
  EXPECT_THAT(values_of(y), testing::ElementsAre(128, 130, 255, 0));
  expect_near(run_op("DequantizeLinear", {y, Tensor::scalar(2.0F), Tensor::scalar<uint8_t>(128)}), {4},
              {0, 4, 254, -256});
}

/// FakeQuantizeFloat8 is QuantizeLinear and DequantizeLinear, for every f16 and what lies between a type's numbers.
void expect_float8_rounds(DType dtype, double most, const Attrs& attrs) {
  std::vector<float> values{0, -0.0F, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  for (int code = 0; code < 256; ++code) {
    const float at = small_to_float(dtype, static_cast<uint8_t>(code));
    const float next = small_to_float(dtype, static_cast<uint8_t>(code + 1));
    if (!std::isfinite(at) || !std::isfinite(next)) continue;
    const float middle = at + (next - at) / 2;
    for (const float value : {at, middle, std::nextafter(middle, at), std::nextafter(middle, next)})
      values.push_back(value * 0.75F);
  }
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    const float value = half_to_float(static_cast<uint16_t>(bits));
    if (std::isfinite(value)) values.push_back(value);
  }
  const auto size = static_cast<int64_t>(values.size());
  const Tensor x = floats({size}, values), scale = Tensor::scalar(0.75F);
  TensorBuilder zero(dtype, {});
  zero.codes()[0] = 0;
  const Tensor point = zero.finish();
  const Tensor expected = run_op("DequantizeLinear", {run_op("QuantizeLinear", {x, scale, point}), scale, point});
  const Tensor within = run_op("Clamp", {x}, {{"min", -0.75 * most}, {"max", 0.75 * most}});
  const Tensor found = run_op("FakeQuantizeFloat8", {within}, attrs);
  for (int64_t i = 0; i < size; ++i) EXPECT_EQ(found.real(i), expected.real(i)) << x.real(i);
}

TEST(Quantize, Float8RoundsAsItsTypesDo) {
  expect_float8_rounds(DType::f8e4m3fn, 448, {{"scale", 0.75}});
  expect_float8_rounds(DType::f8e5m2, 57344,
                       {{"scale", 0.75}, {"normal", 0x1p-14}, {"grid", 0x1.8p7}, {"shift", 0x1p21}});
  EXPECT_TRUE(std::isnan(run_op("FakeQuantizeFloat8", {floats({1}, {std::nanf("")})}).real(0)));
}

}  // namespace
}  // namespace hone
