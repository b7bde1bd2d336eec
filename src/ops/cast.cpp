// SPDX-License-Identifier: Apache-2.0
//
// Cast: `to` is an element type's name in the IR; ONNX's numbers and CastLike's second operand become that name.
#include <cmath>
#include <limits>
#include <string>

#include "base/node_error.h"
#include "base/numbers.h"
#include "base/text.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

/// Constants of at most this many elements may stand for sizes.
constexpr int64_t kMaxCastSizes = 16;

DType target(const Attrs& attrs) {
  const std::optional<DType> dtype = parse_dtype(attrs.text("to"));
  HONE_CHECK_AS(AttributeError, dtype.has_value(), "'{}' is not an element type", attrs.text("to"));
  return *dtype;
}

void import_cast(ImportContext& context) {
  Attrs attrs = context.attrs();
  attrs.set("to", std::string(name_of(dtype_of_onnx(context.attrs().integer("to")))));
  context.set_output(0, context.add("Cast", {context.input(0)}, std::move(attrs))->output());
}
void import_cast_like(ImportContext& context) {
  Attrs attrs = context.attrs();
  attrs.set("to", std::string(name_of(context.input(1)->type.dtype)));
  context.set_output(0, context.add("Cast", {context.input(0)}, std::move(attrs))->output());
}
void import_bit_cast(ImportContext& context) {
  const DType to = dtype_of_onnx(context.attrs().integer("to"));
  context.set_output(0, context.add("BitCast", {context.input(0)}, {{"to", std::string(name_of(to))}})->output());
}

void infer_bit_cast(InferContext& context) {
  const DType from = context.dtype(0), to = target(context.attrs());
  HONE_CHECK(!is_object(from) && !is_object(to) && bits_of(from) == bits_of(to), "the bits of {} cannot be read as {}",
             name_of(from), name_of(to));
  context.set(0, to, context.shape(0));
}
void eval_bit_cast(EvalContext& context) {
  const Tensor& x = context.input(0);
  const DType to = target(context.attrs());
  if (bits_of(to) == 8 || !is_small(to)) return context.set(0, Tensor(to, x.dims(), x.blob()));
  TensorBuilder builder(to, x.dims());  // codes of signed kinds extend their sign, those of others do not
  const uint8_t mask = static_cast<uint8_t>((1 << bits_of(to)) - 1);
  for (size_t i = 0; i < x.codes().size(); ++i) {
    const uint8_t code = x.codes()[i] & mask;
    builder.codes()[i] = is_integer(to) ? float_to_small(to, small_to_float(to, code)) : code;
  }
  context.set(0, builder.finish());
}

/// Integers narrow by dropping bits, floats towards integers truncate (out of range saturates), anything to bool is != 0.
template <typename To, typename From>
To convert(From from) {
  constexpr bool small_from = std::is_same_v<From, Half> || std::is_same_v<From, BFloat>;
  if constexpr (small_from) return convert<To>(static_cast<float>(from));
  else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat>) return To(static_cast<float>(from));
  else if constexpr (std::is_same_v<To, bool>) return from != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return saturated<To>(from);
  else return static_cast<To>(from);
}

/// Shapes travel through casts: integers stay what they are, also on the detour over floats that exporters take.
void infer_cast(InferContext& context) {
  const DType to = target(context.attrs());
  context.set(0, to, context.shape(0));
  std::optional<SymbolicData> data = context.symbolic(0);
  const Tensor* constant = context.constant(0);
  if (constant != nullptr && is_float(constant->dtype()) && constant->size() <= kMaxCastSizes &&
      (to == DType::i64 || to == DType::i32)) {
    SymbolicData whole;
    for (int64_t i = 0; i < constant->size(); ++i) whole.emplace_back(convert<int64_t>(constant->real(i)));
    return context.set_symbolic(0, std::move(whole));
  }
  if (!data || is_float(context.dtype(0)) || to == DType::string) return;
  if (to == DType::boolean) {
    for (Dim& dim : *data) {
      if (!dim.is_constant()) return;
      dim = Dim(dim.value() != 0 ? 1 : 0);
    }
  }
  if (to == DType::i64 || to == DType::i32 || to == DType::boolean) context.set_symbolic(0, std::move(*data));
}

/// Powers of two take a rounding mode of their own.
uint8_t power_code(float value, const Attrs& attrs) {
  const std::string& mode = attrs.text("round_mode");
  const bool saturate = attrs.integer("saturate") != 0;
  if (mode == "nearest" || !std::isfinite(value) || value <= 0) return float_to_small(DType::f8e8m0, value, saturate);
  const int exponent = std::ilogb(value);
  const bool exact = std::ldexp(1.0f, exponent) == value;
  const int rounded = exponent + (mode == "up" && !exact ? 1 : 0);
  return rounded + 127 > 254 ? static_cast<uint8_t>(saturate ? 254 : 255)
                             : static_cast<uint8_t>(std::max(rounded + 127, 0));
}

Tensor to_small(const Tensor& x, DType to, const Attrs& attrs) {
  TensorBuilder builder(to, x.dims());
  const std::vector<double> values = read_doubles(x);
  const bool saturate = attrs.integer("saturate") != 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(values[i]);
    builder.codes()[i] = to == DType::f8e8m0 ? power_code(value, attrs) : float_to_small(to, value, saturate);
  }
  return builder.finish();
}

Tensor from_strings(const Tensor& x, DType to) {
  std::vector<double> values;
  for (const std::string& text : x.strings()) {
    const std::optional<double> value = parse_real(text);
    HONE_CHECK(value.has_value(), "'{}' is not a number", text);
    values.push_back(*value);
  }
  return write_doubles(to, x.dims(), values);
}

Tensor to_strings(const Tensor& x) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < x.size(); ++i)
    texts.push_back(x.dtype() == DType::f64 ? exact(x.real(i))
                    : is_float(x.dtype())   ? exact(static_cast<float>(x.real(i)))
                                            : std::to_string(x.integer(i)));
  return Tensor::of_strings(x.dims(), std::move(texts));
}

void eval_cast(EvalContext& context) {
  const Tensor& x = context.input(0);
  const DType to = target(context.attrs());
  if (x.dtype() == to) return context.set(0, x);
  if (x.dtype() == DType::string) return context.set(0, from_strings(x, to));
  if (to == DType::string) return context.set(0, to_strings(x));
  if (is_small(to)) return context.set(0, to_small(x, to, context.attrs()));
  if (is_small(x.dtype())) return context.set(0, write_doubles(to, x.dims(), read_doubles(x)));
  TensorBuilder builder(to, x.dims());
  visit(x.dtype(), [&]<typename From>() {
    visit(to, [&]<typename To>() {
      const std::span<const From> from = x.data<From>();
      const std::span<To> result = builder.data<To>();
      for (size_t i = 0; i < result.size(); ++i) result[i] = convert<To>(from[i]);
    });
  });
  context.set(0, builder.finish());
}

}  // namespace

const OpDef ops::cast{
    .name = "Cast",
    .attrs = {required_attr("to", AttrKind::text), integer_attr("saturate", 1), text_attr("round_mode", "up")},
    .infer = infer_cast,
    .eval = eval_cast,
    .onnx = {{"Cast", 6, kEveryLater, import_cast}, {"CastLike", 15, kEveryLater, import_cast_like}},
    .traits = {.hands_on = HandsOn::first}};

const OpDef ops::bit_cast{.name = "BitCast",
                          .attrs = {required_attr("to", AttrKind::text)},
                          .infer = infer_bit_cast,
                          .eval = eval_bit_cast,
                          .onnx = {{"BitCast", 26, kEveryLater, import_bit_cast}}};

}  // namespace hone
