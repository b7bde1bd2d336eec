// SPDX-License-Identifier: Apache-2.0
//
// Cast: `to` is an element type's name in the IR; ONNX's numbers and CastLike's second operand become that name.
#include <cmath>
#include <limits>
#include <string>

#include "base/text.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

DType target(const Attrs& attrs) {
  const std::optional<DType> dtype = parse_dtype(attrs.text("to"));
  HONE_CHECK(dtype.has_value(), "'{}' is not an element type", attrs.text("to"));
  return *dtype;
}

void import_cast(ImportContext& context) {
  const DType to = dtype_of_onnx(context.attrs().integer("to"));
  context.set_output(0, context.add("Cast", {context.input(0)}, {{"to", std::string(name_of(to))}})->output());
}
void import_cast_like(ImportContext& context) {
  const DType to = context.input(1)->type.dtype;
  context.set_output(0, context.add("Cast", {context.input(0)}, {{"to", std::string(name_of(to))}})->output());
}

/// Shapes travel through casts: integers stay what they are, also on the detour over floats that exporters take.
void infer_cast(InferContext& context) {
  const DType to = target(context.attrs());
  context.set(0, to, context.shape(0));
  std::optional<SymbolicData> data = context.symbolic(0);
  if (!data || is_float(context.dtype(0)) || to == DType::string) return;
  if (to == DType::boolean) {
    for (Dim& dim : *data) {
      if (!dim.is_constant()) return;
      dim = Dim(dim.value() != 0 ? 1 : 0);
    }
  }
  if (to == DType::i64 || to == DType::i32 || to == DType::boolean) context.set_symbolic(0, std::move(*data));
}

/// Integers narrow by dropping bits, floats towards integers truncate (out of range saturates), anything to bool is != 0.
template <typename To, typename From>
To convert(From from) {
  constexpr bool small_from = std::is_same_v<From, Half> || std::is_same_v<From, BFloat>;
  if constexpr (small_from) return convert<To>(static_cast<float>(from));
  else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat>) return To(static_cast<float>(from));
  else if constexpr (std::is_same_v<To, bool>) return from != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(from)) return 0;
    if (from <= static_cast<From>(std::numeric_limits<To>::lowest())) return std::numeric_limits<To>::lowest();
    if (from >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(from);
  } else return static_cast<To>(from);
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
    texts.push_back(x.dtype() == DType::f64 ? exact(x.real(i)) : is_float(x.dtype()) ? exact(static_cast<float>(x.real(i))) : std::to_string(x.integer(i)));
  return Tensor::of_strings(x.dims(), std::move(texts));
}

void eval_cast(EvalContext& context) {
  const Tensor& x = context.input(0);
  const DType to = target(context.attrs());
  if (x.dtype() == to) return context.set(0, x);
  if (x.dtype() == DType::string) return context.set(0, from_strings(x, to));
  if (to == DType::string) return context.set(0, to_strings(x));
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

const OpDef ops::cast{.name = "Cast",
                      .attrs = {required_attr("to", AttrKind::text)},
                      .infer = infer_cast,
                      .eval = eval_cast,
                      .onnx = {{"Cast", 6, 1 << 20, import_cast}, {"CastLike", 15, 1 << 20, import_cast_like}}};

}  // namespace hone
