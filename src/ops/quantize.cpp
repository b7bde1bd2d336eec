// SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear and DequantizeLinear: one scale and zero point for the whole tensor, one per element of an axis, or one
// per block of an axis.
#include <cmath>
#include <limits>

#include "base/limits.h"
#include "base/node_error.h"
#include "ops/byte_scale.h"
#include "ops/expansions.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

/// Which scale an element of x uses.
class ScaleIndex {
 public:
  ScaleIndex(const EvalContext& context) {
    const Dims &x = context.input(0).dims(), &scale = context.input(1).dims();
    const int64_t block = context.attrs().integer("block_size");
    if (elements(scale) == 1) return;
    const size_t axis = normalize_axis(context.attrs().integer("axis"), x.size());
    const AxisView view(x, axis);
    inner_ = view.inner, length_ = view.length;
    block_ = block > 0 ? block : 1;
    blocked_ = block > 0;
    const int64_t expected = blocked_ ? (length_ + block_ - 1) / block_ : length_;
    const int64_t given = blocked_ ? scale.at(axis) : elements(scale);
    HONE_CHECK(given == expected, "{} scales along axis {} of size {}", given, axis, length_);
    HONE_CHECK(!blocked_ || elements(scale) == view.outer * expected * view.inner, "scales [{}] do not fit data [{}]",
               join_dims(scale, ","), join_dims(x, ","));
    scales_ = expected;
  }
  size_t operator()(int64_t i) const {
    if (scales_ == 0) return 0;
    const int64_t at = i / inner_ % length_;
    if (!blocked_) return static_cast<size_t>(at);
    return static_cast<size_t>((i / (inner_ * length_) * scales_ + at / block_) * inner_ + i % inner_);
  }

 private:
  int64_t inner_ = 1, length_ = 1, block_ = 1, scales_ = 0;
  bool blocked_ = false;
};

/// The zero point's type decides; output_dtype is turned into a zero point by the rule.
void infer_quantize(InferContext& context) {
  context.set(0, context.has(2) ? context.dtype(2) : DType::u8, context.shape(0));
}
void infer_dequantize(InferContext& context) { context.set(0, context.dtype(1), context.shape(0)); }

std::vector<double> zero_points(const EvalContext& context) {
  const int64_t scales = context.input(1).size();
  if (!context.has(2)) return std::vector<double>(static_cast<size_t>(scales), 0);
  HONE_CHECK(context.input(2).size() == scales, "{} scales have {} zero points", scales, context.input(2).size());
  return read_doubles(context.input(2));
}

Tensor quantized(DType dtype, Dims dims, const std::vector<double>& y, bool saturate) {
  if (saturate || !is_small(dtype)) return write_doubles(dtype, std::move(dims), y);
  TensorBuilder builder(dtype, std::move(dims));
  for (size_t i = 0; i < y.size(); ++i) builder.codes()[i] = float_to_small(dtype, static_cast<float>(y[i]), false);
  return builder.finish();
}

void eval_quantize(EvalContext& context) {
  const Tensor& x = context.input(0);
  const auto data = read_doubles(x), scale = read_doubles(context.input(1)), zero = zero_points(context);
  const ScaleIndex which(context);
  const DType dtype = context.has(2) ? context.input(2).dtype() : DType::u8, precision = context.input(1).dtype();
  std::vector<double> y(data.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t k = which(static_cast<int64_t>(i));
    const double scaled = rounded_quotient(precision, static_cast<float>(data[i]) / static_cast<float>(scale[k]));
    y[i] = (is_integer(dtype) ? std::nearbyint(scaled) : scaled) + zero[k];
  }
  const bool saturate = is_integer(dtype) || context.attrs().integer("saturate") != 0;
  context.set(0, quantized(dtype, x.dims(), y, saturate));
}

void eval_dequantize(EvalContext& context) {
  const Tensor& x = context.input(0);
  const auto data = read_doubles(x), scale = read_doubles(context.input(1)), zero = zero_points(context);
  const ScaleIndex which(context);
  std::vector<double> y(data.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t k = which(static_cast<int64_t>(i));
    y[i] = (data[i] - zero[k]) * scale[k];
  }
  context.set(0, write_doubles(context.input(1).dtype(), x.dims(), y));
}

std::vector<Value*> operands(ImportContext& context) {
  std::vector<Value*> inputs;
  for (size_t i = 0; i < context.inputs(); ++i) inputs.push_back(context.input(i));
  return inputs;
}

/// A constant stays one: passes ask for scales that are known.
Value* as_floats(ImportContext& context, Value* value, DType dtype) {
  if (value->type.dtype == dtype || !value->is_constant()) return as_type(context, value, dtype);
  const Tensor& tensor = *value->constant;
  return context.constant(write_doubles(dtype, tensor.dims(), read_doubles(tensor)));
}

Attrs places(ImportContext& context) {
  return {{"axis", context.attrs().integer_or("axis", 1)}, {"block_size", context.attrs().integer_or("block_size", 0)}};
}

/// The type that `output_dtype` names becomes that of a zero point, `precision` that of the scale.
void import_quantize(ImportContext& context) {
  std::vector<Value*> inputs = operands(context);
  inputs.resize(3, nullptr);
  const int64_t given = context.attrs().integer_or("output_dtype", 0),
                precision = context.attrs().integer_or("precision", 0);
  if (inputs[2] == nullptr && given != 0) {
    const Shape& scale = inputs[1]->type.shape;
    HONE_CHECK(scale.is_static(), "output_dtype needs a scale whose sizes are numbers");
    const int64_t count = elements(scale.values());
    if (count > kMaxFoldedBytes && !inputs[1]->is_constant())
      throw Error(fmt::format("output_dtype asks for {} zero points, as many as there are scales", count),
                  "give the node its zero point, of the type that it shall have");
    const std::vector<double> zeros(static_cast<size_t>(count), 0);
    inputs[2] = context.constant(write_doubles(dtype_of_onnx(given), scale.values(), zeros));
  }
  HONE_CHECK(given == 0 || inputs[2]->type.dtype == dtype_of_onnx(given), "output_dtype is {}, the zero point {}",
             name_of(dtype_of_onnx(given)), name_of(inputs[2]->type.dtype));
  if (precision != 0) {
    const DType dtype = dtype_of_onnx(precision);
    HONE_CHECK_AS(TypeError, is_float(dtype), "the precision of a division cannot be {}", name_of(dtype));
    for (Value*& value : std::span(inputs).first(2)) value = as_floats(context, value, dtype);
  }
  Attrs attrs = places(context);
  attrs.set("saturate", context.attrs().integer_or("saturate", 1));
  if (inputs[2] == nullptr) inputs.pop_back();
  context.set_output(0, context.add("QuantizeLinear", std::move(inputs), std::move(attrs))->output());
}

/// Scales of another type than the result's: the product is one of f32.
void import_dequantize(ImportContext& context) {
  std::vector<Value*> inputs = operands(context);
  const int64_t given = context.attrs().integer_or("output_dtype", 0);
  const DType dtype = given == 0 ? inputs[1]->type.dtype : dtype_of_onnx(given);
  HONE_CHECK_AS(TypeError, is_float(dtype), "output_dtype is {}", name_of(dtype));
  if (dtype != inputs[1]->type.dtype) inputs[1] = as_floats(context, inputs[1], DType::f32);
  Value* result = context.add("DequantizeLinear", std::move(inputs), places(context))->output();
  context.set_output(0, as_type(context, result, dtype));
}

}  // namespace

const OpDef ops::quantize_linear{
    .name = "QuantizeLinear",
    .attrs = {integer_attr("axis", 1), integer_attr("block_size", 0), integer_attr("saturate", 1)},
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = infer_quantize,
    .eval = eval_quantize,
    .onnx = {{"QuantizeLinear", 10, kEveryLater, import_quantize}}};
const OpDef ops::dequantize_linear{.name = "DequantizeLinear",
                                   .attrs = {integer_attr("axis", 1), integer_attr("block_size", 0)},
                                   .min_inputs = 2,
                                   .max_inputs = 3,
                                   .infer = infer_dequantize,
                                   .eval = eval_dequantize,
                                   .onnx = {{"DequantizeLinear", 10, kEveryLater, import_dequantize}}};

float rounded_quotient(DType scale, float quotient) {
  if (scale == DType::f16) return static_cast<float>(Half(quotient));
  return scale == DType::bf16 ? static_cast<float>(BFloat(quotient)) : quotient;
}

std::optional<ByteScale> byte_scale(const Node& node) {
  constexpr float kLeast = std::numeric_limits<float>::min(), kMost = std::numeric_limits<float>::max() / 256;
  const bool quantizes = node.is(ops::quantize_linear);
  if (!quantizes && !node.is(ops::dequantize_linear)) return std::nullopt;
  const DType floats = (quantizes ? node.input(0) : node.output())->type.dtype,
              bytes = (quantizes ? node.output() : node.input(0))->type.dtype;
  const auto is_known = [](const Value* value) { return value->is_constant() && value->constant->size() == 1; };
  const Value *scale = node.input(1), *zero = node.input(2);
  if (floats != DType::f32 || (bytes != DType::u8 && bytes != DType::i8) || !is_known(scale) ||
      scale->type.dtype != DType::f32 || (zero != nullptr && (!is_known(zero) || zero->type.dtype != bytes)) ||
      node.attrs.integer("block_size") != 0)
    return std::nullopt;
  const auto number = static_cast<float>(scale->constant->real(0));
  if (!(number >= kLeast && number <= kMost)) return std::nullopt;
  return ByteScale{bytes, number, zero == nullptr ? 0 : static_cast<float>(zero->constant->real(0))};
}

}  // namespace hone
