// SPDX-License-Identifier: Apache-2.0
//
// Convolution in one to three spatial axes: gathered columns times weights, group by group.
#include <algorithm>

#include "ops/ops.h"
#include "ops/product.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone::ops {
namespace {

std::vector<int64_t> kernel_of(const Shape& weights) {
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < weights.rank(); ++i) kernel.push_back(weights[i].value());
  return kernel;
}

void infer_conv(InferContext& context) {
  const Shape &x = context.shape(0), &w = context.shape(1);
  HONE_CHECK(x.rank() >= 3 && w.rank() == x.rank(), "Conv needs operands of the same rank of 3 or more, not {} and {}", x.rank(), w.rank());
  require_float(context, 0);
  for (size_t i = 2; i < w.rank(); ++i) HONE_CHECK(w[i].is_constant(), "the kernel of a convolution has the size {}", w[i].text());
  const Window window = window_of(context.attrs(), x.rank() - 2, kernel_of(w));
  const int64_t group = context.attrs().integer("group");
  HONE_CHECK(group >= 1, "group is {}", group);
  HONE_CHECK(!x[1].is_constant() || !w[1].is_constant() || x[1].value() == w[1].value() * group, "the operand has {} channels, the weights are for {} groups of {}", x[1].text(), group, w[1].text());
  HONE_CHECK(!w[0].is_constant() || w[0].value() % group == 0, "{} output channels do not divide into {} groups", w[0].text(), group);
  if (context.has(2)) HONE_CHECK(context.rank(2) == 1 && (!context.shape(2)[0].is_constant() || context.shape(2)[0] == w[0]), "the bias [{}] does not fit {} output channels", context.shape(2).text(), w[0].text());
  Shape result{x[0], w[0]};
  for (size_t i = 2; i < x.rank(); ++i) result.push_back(window_output(x[i], window, i - 2));
  context.set(0, context.dtype(0), result);
}

/// Everything as three spatial axes.
struct Geometry {
  int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
};

Geometry geometry(const Dims& x, const Dims& y, const Window& window) {
  Geometry g{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}};
  const size_t spatial = window.kernel.size(), shift = 3 - spatial;
  HONE_CHECK(spatial <= 3, "convolutions with {} spatial axes are not supported", spatial);
  for (size_t i = 0; i < spatial; ++i) {
    g.in[i + shift] = x[i + 2];
    g.out[i + shift] = y[i + 2];
    g.kernel[i + shift] = window.kernel[i];
    g.stride[i + shift] = window.strides[i];
    g.dilation[i + shift] = window.dilations[i];
    g.pad[i + shift] = window.pads[i];
  }
  return g;
}

/// columns[(channel, tap), output position] of one image and one output plane row range.
void gather_columns(const float* image, int64_t channels, const Geometry& g, int64_t od, int64_t oh, float* columns) {
  const int64_t width = g.out[2];
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t kd = 0; kd < g.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < g.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < g.kernel[2]; ++kw) {
          const int64_t d = od * g.stride[0] - g.pad[0] + kd * g.dilation[0], h = oh * g.stride[1] - g.pad[1] + kh * g.dilation[1];
          float* row = columns;
          columns += width;
          if (d < 0 || d >= g.in[0] || h < 0 || h >= g.in[1]) {
            std::fill_n(row, width, 0.0f);
            continue;
          }
          const float* source = image + ((c * g.in[0] + d) * g.in[1] + h) * g.in[2];
          for (int64_t ow = 0; ow < width; ++ow) {
            const int64_t w = ow * g.stride[2] - g.pad[2] + kw * g.dilation[2];
            row[ow] = w < 0 || w >= g.in[2] ? 0.0f : source[w];
          }
        }
}

/// out[m, width] = weights[m, k] * columns[k, width]; rows of weights in pairs of four keep the columns in registers.
void multiply_rows(const float* weights, const float* columns, int64_t m, int64_t k, int64_t width, int64_t out_stride, float* out) {
  for (int64_t i = 0; i < m; i += 4) {
    const int64_t rows = std::min<int64_t>(4, m - i);
    for (int64_t p0 = 0; p0 < k; p0 += 256)
      for (int64_t r = 0; r < rows; ++r) {
        float* target = out + (i + r) * out_stride;
        for (int64_t p = p0; p < std::min(p0 + 256, k); ++p) {
          const float x = weights[(i + r) * k + p];
          const float* row = columns + p * width;
          for (int64_t j = 0; j < width; ++j) target[j] += x * row[j];
        }
      }
  }
}

void eval_conv(EvalContext& context) {
  const Tensor &x = context.input(0), &w = context.input(1);
  const size_t spatial = x.dims().size() - 2;
  const Window window = window_of(context.attrs(), spatial, {w.dims().begin() + 2, w.dims().end()});
  const int64_t group = context.attrs().integer("group"), batch = x.dims()[0], outputs = w.dims()[0], channels = w.dims()[1];
  Dims dims{batch, outputs};
  for (size_t i = 0; i < spatial; ++i) dims.push_back(window_output(x.dims()[i + 2], window, i));
  const Geometry g = geometry(x.dims(), dims, window);
  const FloatView fx(x), fw(w);
  std::vector<float> out(static_cast<size_t>(elements(dims)), 0.0f);
  const int64_t in_area = g.in[0] * g.in[1] * g.in[2], out_area = g.out[0] * g.out[1] * g.out[2];
  const int64_t k = channels * g.kernel[0] * g.kernel[1] * g.kernel[2], per_group = outputs / group;
#pragma omp parallel
  {
    std::vector<float> columns(static_cast<size_t>(k * g.out[2]));
#pragma omp for collapse(4) schedule(static)
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t part = 0; part < group; ++part)
        for (int64_t od = 0; od < g.out[0]; ++od)
          for (int64_t oh = 0; oh < g.out[1]; ++oh) {
            gather_columns(fx.data() + (n * group + part) * channels * in_area, channels, g, od, oh, columns.data());
            float* target = out.data() + (n * outputs + part * per_group) * out_area + (od * g.out[1] + oh) * g.out[2];
            multiply_rows(fw.data() + part * per_group * k, columns.data(), per_group, k, g.out[2], out_area, target);
          }
  }
  if (context.has(2)) {
    const FloatView bias(context.input(2));
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t c = 0; c < outputs; ++c)
        for (int64_t i = 0; i < out_area; ++i) out[static_cast<size_t>((n * outputs + c) * out_area + i)] += bias[c];
  }
  context.set(0, from_floats(x.dtype(), dims, out));
}

void import_conv(ImportContext& context) {
  const Shape& weights = context.input(1)->type.shape;
  for (size_t i = 2; i < weights.rank(); ++i) HONE_CHECK(weights[i].is_constant(), "the kernel of a convolution has the size {}", weights[i].text());
  complete_window(context, kernel_of(weights));
  context.set_output(0, context.add("Conv", {context.input(0), context.input(1), context.inputs() > 2 ? context.input(2) : nullptr}, context.attrs())->output());
}

}  // namespace

const OpDef conv = [] {
  OpDef op{.name = "Conv", .attrs = window_attrs(), .min_inputs = 2, .max_inputs = 3, .infer = infer_conv, .eval = eval_conv, .onnx = {{"Conv", 1, 1 << 20, import_conv}}};
  op.attrs.push_back({"group", AttrKind::integer, int64_t{1}});
  return op;
}();

}  // namespace hone::ops
