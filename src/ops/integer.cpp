// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of small integers, exact for any length, and DynamicQuantizeLinear. QLinearConv becomes ConvInteger with the scales
// behind it.
#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "ops/expansions.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone {
namespace {

// ---- ConvInteger(x, w, x_zero?, w_zero?) ----

void infer_conv_integer(InferContext& context) {
  const Shape &x = context.shape(0), &w = context.shape(1);
  HONE_CHECK(x.rank() >= 3, "ConvInteger's input has rank {} where at least 3 is needed", x.rank());
  check_rank(context, 1, x.rank(), "ConvInteger's weight");
  const WindowAttrs window(context.attrs(), x.rank() - 2, kernel_of_weight(w));
  const int64_t group = context.attrs().integer("group");
  HONE_CHECK(group >= 1, "group {} is not positive", group);
  HONE_CHECK(!w[0].is_constant() || w[0].value() % group == 0, "{} filters do not divide into {} groups", w[0].text(),
             group);
  check_equal(x[1], w[1] * Dim(group), "channels of ConvInteger's input and weight x group");
  Shape result{x[0], w[0]};
  for (size_t i = 2; i < x.rank(); ++i) result.push_back(window.result_size(x[i], i - 2));
  context.set(0, DType::i32, std::move(result));
}

std::vector<int64_t> integers_of(const Tensor& tensor) { return tensor.integers(); }

void eval_conv_integer(EvalContext& context) {
  const Tensor &x = context.input(0), &w = context.input(1);
  const WindowAttrs window(context.attrs(), x.dims().size() - 2, spatial_of(w.dims()));
  const Dims input = spatial_of(x.dims());
  Dims result;
  for (size_t i = 0; i < input.size(); ++i) result.push_back(window.result_size(Dim(input[i]), i).value());
  const WindowTable table(window, input, result);
  const std::vector<int64_t> image = integers_of(x), weight = integers_of(w);
  const int64_t x_zero = context.has(2) ? context.input(2).integer(0) : 0, filters = w.dims()[0],
                channels = w.dims()[1], groups = context.attrs().integer("group");
  const std::vector<int64_t> w_zeros = context.has(3) ? integers_of(context.input(3)) : std::vector<int64_t>{0};
  HONE_CHECK(w_zeros.size() == 1 || static_cast<int64_t>(w_zeros.size()) == filters, "{} filters have {} zero points",
             filters, w_zeros.size());
  HONE_CHECK(x.dims()[1] == channels * groups && filters % groups == 0,
             "{} channels do not divide into {} groups of {}", x.dims()[1], groups, channels);
  std::vector<int64_t> out;
  for (int64_t n = 0; n < x.dims()[0]; ++n)
    for (int64_t f = 0; f < filters; ++f) {
      const int64_t w_zero = w_zeros[w_zeros.size() == 1 ? 0 : static_cast<size_t>(f)],
                    first = f / (filters / groups) * channels;
      for (int64_t r = 0; r < table.results; ++r) {
        int64_t sum = 0;
        for (int64_t c = 0; c < channels; ++c)
          for (int64_t tap = 0; tap < table.taps; ++tap)
            if (const int32_t offset = table.offsets[static_cast<size_t>(tap * table.results + r)]; offset >= 0)
              sum = wrapping_add(
                  sum,
                  wrapping_multiply(
                      wrapping_subtract(
                          image[static_cast<size_t>((n * x.dims()[1] + first + c) * table.inputs + offset)], x_zero),
                      wrapping_subtract(weight[static_cast<size_t>((f * channels + c) * table.taps + tap)], w_zero)));
        out.push_back(sum);
      }
    }
  Dims dims{x.dims()[0], filters};
  dims.insert(dims.end(), result.begin(), result.end());
  context.set(0, write_integers(DType::i32, std::move(dims), out));
}

Value* add_conv_integer(ImportContext& context, Value* x, Value* w, Value* x_zero, Value* w_zero) {
  Attrs attrs = context.attrs();
  complete_window_attrs(context, attrs, x->type.shape, kernel_of_weight(w->type.shape));
  return context.add("ConvInteger", {x, w, x_zero, w_zero}, std::move(attrs))->output();
}

void import_conv_integer(ImportContext& context) {
  context.set_output(
      0, add_conv_integer(context, context.input(0), context.input(1), given(context, 2), given(context, 3)));
}

/// x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias?
void import_q_linear_conv(ImportContext& context) {
  const size_t rank = context.input(0)->type.shape.rank();
  Value* sum = add_conv_integer(context, context.input(0), context.input(3), context.input(2), context.input(5));
  std::vector<int64_t> spatial;
  for (size_t i = 1; i + 1 < rank; ++i) spatial.push_back(static_cast<int64_t>(i));
  const auto per_filter = [&](Value* value) {  // along axis 1 of the result
    return value->type.shape.rank() == 1
               ? context.add("Unsqueeze", {value, integer_constant(context, spatial)})->output()
               : value;
  };
  if (Value* bias = given(context, 8)) sum = plus(context, sum, per_filter(bias));
  Value* scaled = as_type(context, sum, DType::f32);
  Value* scale = made(context, "Mul", {per_filter(context.input(4)), context.input(1)});
  scaled = made(context, "Mul", {scaled, scale});
  context.set_output(
      0, context.add("QuantizeLinear", {scaled, context.input(6), context.input(7)}, {{"axis", int64_t{1}}})->output());
}

// ---- DynamicQuantizeLinear: scale and zero point such that the data and 0 fit u8 ----

void infer_dynamic_quantize(InferContext& context) {
  context.set(0, DType::u8, context.shape(0));
  context.set(1, DType::f32, {});
  context.set(2, DType::u8, {});
}

void eval_dynamic_quantize(EvalContext& context) {
  const Floats x(context.input(0));
  float low = 0, high = 0;
  for (size_t i = 0; i < x.size(); ++i) low = std::min(low, x.data()[i]), high = std::max(high, x.data()[i]);
  const float scale = (high - low) / 255,
              zero = scale == 0 ? 0 : std::clamp(std::nearbyint(-low / scale), 0.0f, 255.0f);
  std::vector<float> out;
  for (size_t i = 0; i < x.size(); ++i) out.push_back(scale == 0 ? 0 : std::nearbyint(x.data()[i] / scale) + zero);
  context.set(0, write_floats(DType::u8, context.input(0).dims(), out));
  context.set(1, Tensor::scalar(scale));
  context.set(2, Tensor::scalar(saturated<uint8_t>(zero)));
}

}  // namespace

const OpDef ops::conv_integer{
    .name = "ConvInteger",
    .attrs = {text_attr("auto_pad", "NOTSET"), integers_attr("kernel_shape"), integers_attr("strides"),
              integers_attr("pads"), integers_attr("dilations"), integer_attr("group", 1)},
    .min_inputs = 2,
    .max_inputs = 4,
    .infer = infer_conv_integer,
    .eval = eval_conv_integer,
    .onnx = {{"ConvInteger", 10, kEveryLater, import_conv_integer},
             {"QLinearConv", 10, kEveryLater, import_q_linear_conv}},
    .traits = {.flops = flops_of_filters}};

const OpDef ops::dynamic_quantize_linear{.name = "DynamicQuantizeLinear",
                                         .outputs = 3,
                                         .infer = infer_dynamic_quantize,
                                         .eval = eval_dynamic_quantize,
                                         .onnx = {{"DynamicQuantizeLinear", 11}}};

}  // namespace hone
