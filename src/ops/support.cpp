// SPDX-License-Identifier: Apache-2.0
#include "ops/support.h"
#include "base/numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone {
namespace {

template <typename T>
constexpr bool kSmallFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;

template <typename To, typename From>
To number(From value) {
  if constexpr (kSmallFloat<From>) return static_cast<To>(static_cast<float>(value));
  else return static_cast<To>(value);
}

template <typename T>
T rounded(double value) {
  if constexpr (kSmallFloat<T>) return T(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, bool>) return value != 0;
  else if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
  else return saturated<T>(value);
}

/// Integers of few bits saturate as the larger ones do.
float in_range(DType dtype, double value) {
  if (!is_integer(dtype)) return static_cast<float>(value);
  const bool is_signed = dtype == DType::i4 || dtype == DType::i2;
  const double low = is_signed ? -(1 << (bits_of(dtype) - 1)) : 0,
               high = (1 << (bits_of(dtype) - (is_signed ? 1 : 0))) - 1;
  return static_cast<float>(std::isnan(value) ? 0 : std::clamp(value, low, high));
}

template <typename To>
std::vector<To> read(const Tensor& tensor) {
  std::vector<To> values(static_cast<size_t>(tensor.size()));
  if (is_small(tensor.dtype())) {
    const std::span<const uint8_t> codes = tensor.codes();
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<To>(small_to_float(tensor.dtype(), codes[i]));
    return values;
  }
  visit(tensor.dtype(), [&]<typename T>() {
    const std::span<const T> data = tensor.data<T>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = number<To>(data[i]);
  });
  return values;
}

template <typename From>
Tensor write(DType dtype, Dims dims, std::span<const From> values) {
  TensorBuilder builder(dtype, std::move(dims));
  if (is_small(dtype)) {
    const std::span<uint8_t> codes = builder.codes();
    HONE_ASSERT(codes.size() == values.size(), "{} values for {} elements", values.size(), codes.size());
    for (size_t i = 0; i < codes.size(); ++i)
      codes[i] = float_to_small(dtype, in_range(dtype, static_cast<double>(values[i])));
    return builder.finish();
  }
  visit(dtype, [&]<typename T>() {
    const std::span<T> data = builder.data<T>();
    HONE_ASSERT(data.size() == values.size(), "{} values for {} elements", values.size(), data.size());
    for (size_t i = 0; i < data.size(); ++i) {
      if constexpr (std::is_same_v<From, int64_t> && !kSmallFloat<T>) data[i] = static_cast<T>(values[i]);
      else data[i] = rounded<T>(static_cast<double>(values[i]));
    }
  });
  return builder.finish();
}

}  // namespace

Floats::Floats(const Tensor& tensor) : keep_(tensor) {
  if (tensor.dtype() == DType::f32) {
    view_ = keep_.data<float>();
  } else {
    own_ = read<float>(tensor);
    view_ = own_;
  }
}

std::vector<double> read_doubles(const Tensor& tensor) { return read<double>(tensor); }
Tensor write_doubles(DType dtype, Dims dims, std::span<const double> values) {
  return write(dtype, std::move(dims), values);
}
Tensor write_floats(DType dtype, Dims dims, std::span<const float> values) {
  return write(dtype, std::move(dims), values);
}
Tensor write_integers(DType dtype, Dims dims, std::span<const int64_t> values) {
  return write(dtype, std::move(dims), values);
}
Tensor scalar_of(DType dtype, double value) { return write_doubles(dtype, {}, std::span(&value, 1)); }

AttrSpec integer_attr(std::string_view name, int64_t fallback) {
  return {name, AttrKind::integer, AttrValue(fallback), false, {}};
}
AttrSpec real_attr(std::string_view name, double fallback) {
  return {name, AttrKind::real, AttrValue(fallback), false, {}};
}
AttrSpec text_attr(std::string_view name, std::string fallback) {
  return {name, AttrKind::text, AttrValue(std::move(fallback)), false, {}};
}
AttrSpec integers_attr(std::string_view name) { return {name, AttrKind::integers, std::nullopt, false, {}}; }
AttrSpec required_attr(std::string_view name, AttrKind kind) { return {name, kind, std::nullopt, true, {}}; }

DType dtype_of_onnx(int64_t number) {
  switch (number) {
    case 1: return DType::f32;
    case 2: return DType::u8;
    case 3: return DType::i8;
    case 4: return DType::u16;
    case 5: return DType::i16;
    case 6: return DType::i32;
    case 7: return DType::i64;
    case 8: return DType::string;
    case 9: return DType::boolean;
    case 10: return DType::f16;
    case 11: return DType::f64;
    case 12: return DType::u32;
    case 13: return DType::u64;
    case 16: return DType::bf16;
    case 17: return DType::f8e4m3fn;
    case 18: return DType::f8e4m3fnuz;
    case 19: return DType::f8e5m2;
    case 20: return DType::f8e5m2fnuz;
    case 21: return DType::u4;
    case 22: return DType::i4;
    case 23: return DType::f4e2m1;
    case 24: return DType::f8e8m0;
    case 25: return DType::u2;
    case 26: return DType::i2;
    default: throw Error(fmt::format("ONNX element type {} is not known here", number));
  }
}

void infer_same(InferContext& context) { context.set(0, context.dtype(0), context.shape(0)); }

void check_rank(const InferContext& context, size_t operand, size_t rank, std::string_view what) {
  HONE_CHECK(context.rank(operand) == rank, "{} has rank {} where {} is needed", what, context.rank(operand), rank);
}

void check_equal(const Dim& a, const Dim& b, std::string_view what) {
  HONE_CHECK(!a.is_constant() || !b.is_constant() || a == b, "{}: {} and {} differ", what, a.text(), b.text());
}

bool first_apart(const Node&, size_t operand) { return operand == 0; }

bool first_apart_off_axis(const Node& node, size_t operand) {
  return operand == 0 && normalize_axis(node.attrs.integer("axis"), node.output()->type.shape.rank()) > 0;
}

bool all_apart(const Node& node, size_t operand) {
  return node.input(operand)->type.shape.rank() == node.output()->type.shape.rank();
}

const TensorType& given_type(const std::vector<Value*>& operands, size_t i) {
  HONE_CHECK(operands[i] != nullptr, "operand {} is missing", i);
  return operands[i]->type;
}

OpDef formula_op(std::string_view name, size_t inputs, std::string_view formula, std::vector<OnnxRule> onnx,
                 std::vector<AttrSpec> attrs) {
  OpDef op{.name = name};
  op.attrs = std::move(attrs);
  op.min_inputs = op.max_inputs = inputs;
  op.infer = infer_pointwise;
  op.eval = eval_pointwise;
  op.pointwise = Expr::parse(formula);
  op.onnx = std::move(onnx);
  return op;
}

int64_t broadcast_offset(std::span<const int64_t> result, std::span<const int64_t> operand, int64_t i) {
  int64_t offset = 0, stride = 1;
  for (size_t back = 1; back <= result.size(); ++back) {
    const int64_t size = result[result.size() - back], at = i % size;
    i /= size;
    if (back > operand.size()) continue;
    const int64_t own = operand[operand.size() - back];
    if (own != 1) offset += at * stride;
    stride *= own;
  }
  return offset;
}

AxisView::AxisView(std::span<const int64_t> dims, size_t axis) : length(dims[axis]) {
  for (size_t i = 0; i < axis; ++i) outer *= dims[i];
  for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
}

}  // namespace hone
