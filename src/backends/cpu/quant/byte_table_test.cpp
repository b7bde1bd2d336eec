// SPDX-License-Identifier: Apache-2.0
//
// What is computed between bytes, exactly: tables on every byte, chains of generated code on every pair of them and on floats
// around the middle of two bytes, infinities and NaN.
#include <fmt/format.h>

#include <bit>
#include <limits>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

struct Bytes {
  std::string_view type;
  int zero;
};
constexpr Bytes kBytes[] = {{"u8", 0}, {"u8", 255}, {"u8", 131}, {"i8", -128}, {"i8", 127}, {"i8", 0}};
constexpr float kScales[] = {0.05F, 0.1F, 1.0F, 0x1.fffffep-4F, 3.0F};

/// Every byte once, and, where there are two operands, beside every other.
std::vector<Tensor> every_byte(const Graph& region) {
  std::vector<Tensor> inputs;
  for (const Value* input : region.inputs()) {
    TensorBuilder builder(input->type.dtype, input->type.shape.values());
    const int64_t count = elements(input->type.shape.values());
    for (int64_t i = 0; i < count; ++i) builder.bytes()[i] = static_cast<std::byte>(inputs.empty() ? i : i / 256);
    inputs.push_back(builder.finish());
  }
  return inputs;
}

CheckOptions exactly(std::vector<Tensor> (*inputs)(const Graph&)) {
  return {.tolerance = 0, .tuned = {{"N", 3}}, .run = {{{"N", 3}}, {{"N", 7}}}, .inputs = inputs};
}

std::string constants(const Bytes& x, float scale, const Bytes& y, float result_scale) {
  return fmt::format(
      " %s = constant f32[]{{{:.9g}}}\n %z = constant {}[]{{{}}}\n %r = constant f32[]{{{:.9g}}}\n %o = constant "
      "{}[]{{{}}}\n",
      scale, x.type, x.zero, result_scale, y.type, y.zero);
}

TEST(ByteTables, GiveWhatTheRegionMeans) {
  for (const Bytes& x : kBytes)
    for (const Bytes& y : kBytes) {
      const std::string text = fmt::format(
          "(%x: {}[N,5,7,11]) {{\n{} %d = DequantizeLinear(%x, %s, %z)\n %g = Sigmoid(%d)\n %q = "
          "QuantizeLinear(%g, %r, %o)\n %e = DequantizeLinear(%q, %r, %o)\n %m = Mul(%d, %e)\n %y = "
          "QuantizeLinear(%m, %s, %z)\n return %y\n}}",
          x.type, constants(x, 0.05F, y, 0.004F));
      EXPECT_GT(check_tactics(text, "byte_table", exactly(every_byte)), 0) << text;
      EXPECT_EQ(check_tactics(text, "pointwise", exactly(every_byte)), 0) << text;
    }
}

TEST(ByteTables, AreOfOneTensorAndNumbers) {
  EXPECT_EQ(check_tactics("(%x: u8[N,5], %w: f32[N,5]) {\n %s = constant f32[]{0.1}\n %d = DequantizeLinear(%x, %s)\n "
                          "%a = Add(%d, %w)\n %y = QuantizeLinear(%a, %s)\n return %y\n}",
                          "byte_table"),
            0);
  EXPECT_EQ(check_tactics("(%x: u8[N,5]) {\n %s = constant f32[]{0.1}\n %w = constant f32[5]!01\n %d = "
                          "DequantizeLinear(%x, %s)\n %a = Add(%d, %w)\n %y = QuantizeLinear(%a, %s)\n return %y\n}",
                          "byte_table"),
            0);
  EXPECT_EQ(check_tactics("(%x: u8[1,5]) {\n %s = constant f32[]{0.1}\n %w = constant f32[1,5]!01\n %d = "
                          "DequantizeLinear(%x, %s)\n %a = Add(%d, %w)\n %y = QuantizeLinear(%a, %s)\n return %y\n}",
                          "byte_table"),
            0);
}

TEST(PointwiseOnBytes, AddsEveryPair) {
  for (const Bytes& x : kBytes)
    for (const float scale : kScales) {
      const std::string text = fmt::format(
          "(%x: {0}[N,{1}], %w: {0}[N,{1}]) {{\n{2} %d = DequantizeLinear(%x, %s, %z)\n %e = DequantizeLinear(%w, %r, "
          "%z)\n %a = Add(%d, %e)\n %y = QuantizeLinear(%a, %r, %o)\n return %y\n}}",
          x.type, 65536 / 3 + 5, constants(x, scale, x, scale * 2));
      EXPECT_GT(check_tactics(text, "pointwise", {.tolerance = 0, .tuned = {{"N", 3}}, .inputs = every_byte}), 0)
          << text;
    }
}

TEST(PointwiseOnBytes, BroadcastsEveryWay) {
  for (const Bytes& x : kBytes)
    for (const char* other : {"N,5,4,7", "5,1,1", "N,5,1,1", "1,1,4,7", "7", "1", "N,1,4,1"}) {
      const std::string text = fmt::format(
          "(%x: {0}[N,5,4,7], %w: {0}[{1}]) {{\n{2} %d = DequantizeLinear(%x, %s, %z)\n %e = DequantizeLinear(%w, %r, "
          "%o)\n %a = Mul(%d, %e)\n %y = QuantizeLinear(%a, %s, %z)\n return %y\n}}",
          x.type, other, constants(x, 0.05F, x, 0.01F));
      EXPECT_GT(check_tactics(text, "pointwise", exactly(nullptr)), 0) << text;
    }
}

/// Around the middle of every two bytes, and what is no number or too large.
std::vector<Tensor> floats_for(const Graph& region, float scale) {
  std::vector<float> numbers{std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN(),
                             3e38F,
                             -3e38F,
                             1e10F,
                             -1e10F,
                             1e-42F,
                             -0.0F};
  for (int half = -520; half <= 520; ++half)
    for (int step = -2; step <= 2; ++step) {
      const float middle = scale * (static_cast<float>(half) / 2);
      numbers.push_back(middle == 0 ? 0 : std::bit_cast<float>(std::bit_cast<int32_t>(middle) + step));
    }
  TensorBuilder builder(DType::f32, region.inputs()[0]->type.shape.values());
  size_t i = 0;
  for (float& value : builder.data<float>()) value = numbers[i++ % numbers.size()];
  return {builder.finish()};
}

TEST(PointwiseOnBytes, QuantizesToTheNearest) {
  for (const Bytes& y : kBytes)
    for (const float scale : kScales) {
      const std::string constant = constants(y, scale, y, scale);
      for (const char* body : {" %y = QuantizeLinear(%x, %s, %z)\n",
                               " %q = QuantizeLinear(%x, %s, %z)\n %y = DequantizeLinear(%q, %s, %z)\n"}) {
        const std::string text = fmt::format("(%x: f32[N,1801]) {{\n{}{} return %y\n}}", constant, body);
        CheckOptions options{.tolerance = 0, .tuned = {{"N", 3}}, .run = {{{"N", 3}}, {{"N", 4}}}};
        options.inputs = [scale](const Graph& region) { return floats_for(region, scale); };
        EXPECT_GT(check_tactics(text, "pointwise", options), 0) << text;
      }
    }
}

TEST(PointwiseOnBytes, ReadsAndWritesTails) {
  for (int size = 1; size <= 18; ++size)
    for (const std::string_view type : {"u8", "i8"}) {
      const std::string text = fmt::format(
          "(%x: {0}[N,{1}], %w: f32[{1}]) {{\n %s = constant f32[]{{0.05}}\n %d = DequantizeLinear(%x, %s)\n %a = "
          "Sub(%d, %w)\n %z = constant {0}[]{{1}}\n %y = QuantizeLinear(%a, %s, %z)\n return %y\n}}",
          type, size);
      EXPECT_EQ(check_tactics(text, "pointwise", exactly(nullptr)) > 0, best_isa() != Isa::scalar) << text;
    }
}

TEST(PointwiseOnBytes, LeavesArithmeticOfIntegersAlone) {
  EXPECT_EQ(check_tactics("(%x: u8[N,5], %w: u8[N,5]) {\n %y = Add(%x, %w)\n return %y\n}", "pointwise"), 0);
}

}  // namespace
}  // namespace hone::cpu
