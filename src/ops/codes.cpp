// SPDX-License-Identifier: Apache-2.0
//
// The codes of a quantised tensor in bytes, for devices that multiply bytes inside networks of floats: Encode makes them of floats as
// FakeQuantize rounds, EncodeFloat8 as FakeQuantizeFloat8 does, Decode makes floats of either. Only Hone's passes make them.
#include <algorithm>
#include <cmath>

#include "base/node_error.h"
#include "ir/range.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

float number(const Attrs& attrs, const char* name) { return static_cast<float>(attrs.real(name)); }

/// Divides in f32, as QuantizeLinear does.
void eval_encode(EvalContext& context) {
  const Attrs& attrs = context.attrs();
  const float scale = number(attrs, "scale"), low = number(attrs, "low"), high = number(attrs, "high"),
              of_nan = number(attrs, "of_nan"), zero = number(attrs, "zero");
  const Floats x(context.input(0));
  TensorBuilder codes(DType::i8, context.input(0).dims());
  std::ranges::transform(x.span(), codes.data<int8_t>().begin(), [&](float at) {
    const float step = std::isnan(at) ? of_nan : std::max(low, std::min(high, std::nearbyint(at / scale)));
    return static_cast<int8_t>(step + zero);
  });
  context.set(0, codes.finish());
}

void eval_encode_float8(EvalContext& context) {
  const float scale = number(context.attrs(), "scale");
  const Floats x(context.input(0));
  TensorBuilder codes(DType::f8e4m3fn, context.input(0).dims());
  std::ranges::transform(x.span(), codes.codes().begin(),
                         [&](float at) { return float_to_small(DType::f8e4m3fn, at / scale); });
  context.set(0, codes.finish());
}

void infer_decode(InferContext& context) {
  const std::optional<DType> to = parse_dtype(context.attrs().text("to"));
  const bool codes = context.dtype(0) == DType::i8 || context.dtype(0) == DType::f8e4m3fn;
  HONE_CHECK_AS(TypeError, codes && to && is_float(*to), "Decode of {} to {}", name_of(context.dtype(0)),
                context.attrs().text("to"));
  context.set(0, *to, context.shape(0));
}
void eval_decode(EvalContext& context) {
  const Attrs& attrs = context.attrs();
  const float scale = number(attrs, "scale"), zero = number(attrs, "zero");
  const Floats codes(context.input(0));
  std::vector<float> y(codes.size());
  std::ranges::transform(codes.span(), y.begin(), [&](float code) { return (code - zero) * scale; });
  context.set(0, write_floats(*parse_dtype(attrs.text("to")), context.input(0).dims(), y));
}

std::optional<IntegerRange> accepted_codes(const Node&, size_t) { return IntegerRange{-128, 127}; }

OpDef encode_op() {
  OpDef def =
      formula_op("Encode", 1, "select(is_nan(x), of_nan, max(low, min(high, round_even(x / scale)))) + zero", {},
                 {real_attr("scale", 1), real_attr("low", -128), real_attr("high", 127), real_attr("of_nan", 0),
                  real_attr("zero", 0)});
  def.result = DType::i8;
  def.eval = eval_encode;
  def.traits.timed_without_reals = true;
  return def;
}

OpDef encode_float8_op() {
  OpDef def = formula_op("EncodeFloat8", 1, "x / scale", {}, {real_attr("scale", 1)});
  def.result = DType::f8e4m3fn;
  def.eval = eval_encode_float8;
  def.traits.timed_without_reals = true;
  return def;
}

OpDef decode_op() {
  OpDef def = formula_op("Decode", 1, "(x - zero) * scale", {},
                         {real_attr("scale", 1), real_attr("zero", 0), text_attr("to", "f32")});
  def.infer = infer_decode;
  def.traits.accepts = accepted_codes;
  def.eval = eval_decode;
  def.traits.timed_without_reals = true;
  return def;
}

}  // namespace

/// `low`, `high` and `of_nan` count steps of the scale from 0, as FakeQuantize's; a code is so many steps plus `zero`.
const OpDef ops::encode = encode_op();
/// To the nearest number of E4M3, of two the even one; what is beyond the largest becomes that.
const OpDef ops::encode_float8 = encode_float8_op();
const OpDef ops::decode = decode_op();

}  // namespace hone
