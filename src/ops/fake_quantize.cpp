// SPDX-License-Identifier: Apache-2.0
//
// Floats that were rounded to the codes of a quantised tensor and stay floats: what QuantizeLinear and the DequantizeLinear behind
// it do together, for devices that compute in floats. Only Hone's passes make them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

/// Divides in f32, as QuantizeLinear does: in double precision what lies between two codes would go elsewhere.
void eval_fake_quantize(EvalContext& context) {
  const auto number = [&](const char* name) { return static_cast<float>(context.attrs().real(name)); };
  const float scale = number("scale"), low = number("low"), high = number("high"), of_nan = number("of_nan");
  const Floats x(context.input(0));
  std::vector<float> y(x.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const float at = x.data()[i];
    y[i] = scale * (std::isnan(at) ? of_nan : std::max(low, std::min(high, std::nearbyint(at / scale))));
  }
  context.set(0, write_floats(context.input(0).dtype(), context.input(0).dims(), y));
}

/// As DynamicQuantizeLinear says: 0 and all elements lie within 255 steps.
void eval_dynamic_fake_quantize(EvalContext& context) {
  const Floats x(context.input(0));
  float low = 0, high = 0;
  for (size_t i = 0; i < x.size(); ++i) low = std::min(low, x.data()[i]), high = std::max(high, x.data()[i]);
  const float scale = (high - low) / 255,
              zero = scale == 0 ? 0 : std::clamp(std::nearbyint(-low / scale), 0.0f, 255.0f);
  std::vector<float> y(x.size());
  for (size_t i = 0; i < y.size() && scale != 0; ++i) {
    const float at = x.data()[i], code = std::isnan(at) ? 0 : std::nearbyint(at / scale) + zero;
    y[i] = (std::clamp(code, 0.0f, 255.0f) - zero) * scale;
  }
  context.set(0, write_floats(context.input(0).dtype(), context.input(0).dims(), y));
}

/// To the nearest of the type's numbers, of two the even one: below the least normal number by an addition that leaves no finer
/// digits, above it by the two parts of a product that leaves as many as the type has (Veltkamp's).
void eval_fake_quantize_float8(EvalContext& context) {
  const auto number = [&](const char* name) { return static_cast<float>(context.attrs().real(name)); };
  const float scale = number("scale"), normal = number("normal"), grid = number("grid"), shift = number("shift");
  const auto rounded = [&](float value) {
    const float shifted = value + value * shift;
    return std::abs(value) < normal ? (value + grid) - grid : shifted - (shifted - value);
  };
  const Floats x(context.input(0));
  std::vector<float> y(x.size());
  std::ranges::transform(x.span(), y.begin(), [&](float at) { return scale * rounded(at / scale); });
  context.set(0, write_floats(context.input(0).dtype(), context.input(0).dims(), y));
}

OpDef fake_quantize_float8_op() {
  const std::string value = "(x / scale)", shifted = fmt::format("({0} + {0} * shift)", value);
  OpDef def = formula_op(
      "FakeQuantizeFloat8", 1,
      fmt::format("scale * select(abs({0}) < normal, ({0} + grid) - grid, {1} - ({1} - {0}))", value, shifted), {},
      {real_attr("scale", 1), real_attr("normal", 0x1p-6), real_attr("grid", 0x1.8p14), real_attr("shift", 0x1p20)});
  def.eval = eval_fake_quantize_float8;
  def.traits.timed_without_reals = true;
  return def;
}

OpDef fake_quantize_op() {
  OpDef def =
      formula_op("FakeQuantize", 1, "scale * select(is_nan(x), of_nan, max(low, min(high, round_even(x / scale))))", {},
                 {real_attr("scale", 1), real_attr("low", -128), real_attr("high", 127), real_attr("of_nan", 0)});
  def.eval = eval_fake_quantize;
  def.traits.timed_without_reals = true;
  return def;
}

}  // namespace

/// `low` and `high` count steps of the scale from 0, not from the zero point; `of_nan` is what the code of NaN, 0, counts.
const OpDef ops::fake_quantize = fake_quantize_op();
/// The same of a float8 type, whose least normal number is `normal`, for what lies within its numbers; the defaults are E4M3's.
const OpDef ops::fake_quantize_float8 = fake_quantize_float8_op();
const OpDef ops::dynamic_fake_quantize{.name = "DynamicFakeQuantize",
                                       .infer = infer_same,
                                       .eval = eval_dynamic_fake_quantize,
                                       .traits = {.few_bits = FewBits::passes}};

}  // namespace hone
