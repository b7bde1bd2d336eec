// SPDX-License-Identifier: Apache-2.0
//
// Transposed convolution: every input element adds its weighted kernel to the output.
#include "ops/ops.h"
#include "ops/floats.h"
#include "ops/sliding.h"

namespace hone::ops {
namespace {

Dim output_size(const Dim& size, const Window& w, const std::vector<int64_t>& extra, size_t axis) {
  const size_t spatial = w.kernel.size();
  return Dim(w.strides[axis]) * (size - Dim(1)) + Dim(extra[axis] + w.dilations[axis] * (w.kernel[axis] - 1) + 1 - w.pads[axis] - w.pads[axis + spatial]);
}

std::vector<int64_t> extra_of(const Attrs& attrs, size_t spatial) {
  if (!attrs.has("output_padding")) return std::vector<int64_t>(spatial, 0);
  HONE_CHECK(attrs.integers("output_padding").size() == spatial, "output_padding has {} values for {} spatial axes", attrs.integers("output_padding").size(), spatial);
  return attrs.integers("output_padding");
}

std::vector<int64_t> kernel_of(const Shape& weights) {
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < weights.rank(); ++i) kernel.push_back(weights[i].value());
  return kernel;
}

void infer_conv_transpose(InferContext& context) {
  const Shape &x = context.shape(0), &w = context.shape(1);
  HONE_CHECK(x.rank() >= 3 && w.rank() == x.rank(), "ConvTranspose needs operands of the same rank of 3 or more, not {} and {}", x.rank(), w.rank());
  const size_t spatial = x.rank() - 2;
  const Window window = window_of(context.attrs(), spatial, kernel_of(w));
  HONE_CHECK(!x[1].is_constant() || x[1] == w[0], "the operand has {} channels, the weights {}", x[1].text(), w[0].text());
  Shape result{x[0], w[1] * Dim(context.attrs().integer("group"))};
  const std::vector<int64_t> extra = extra_of(context.attrs(), spatial);
  for (size_t i = 0; i < spatial; ++i) result.push_back(output_size(x[i + 2], window, extra, i));
  context.set(0, context.dtype(0), result);
}

void eval_conv_transpose(EvalContext& context) {
  const Tensor &x = context.input(0), &w = context.input(1);
  const size_t spatial = x.dims().size() - 2;
  HONE_CHECK(spatial <= 2, "ConvTranspose with {} spatial axes is not supported", spatial);
  const Window window = window_of(context.attrs(), spatial, {w.dims().begin() + 2, w.dims().end()});
  const std::vector<int64_t> extra = extra_of(context.attrs(), spatial);
  const int64_t group = context.attrs().integer("group"), batch = x.dims()[0], channels = x.dims()[1], per_group = w.dims()[1], outputs = per_group * group;
  Dims dims{batch, outputs};
  for (size_t i = 0; i < spatial; ++i) dims.push_back(output_size(Dim(x.dims()[i + 2]), window, extra, i).value());
  const bool flat = spatial == 1;
  const size_t last = spatial - 1;
  const int64_t ih = flat ? 1 : x.dims()[2], iw = x.dims().back(), oh = flat ? 1 : dims[2], ow = dims.back(), kh = flat ? 1 : window.kernel[0], kw = window.kernel[last];
  const int64_t sh = flat ? 1 : window.strides[0], sw = window.strides[last], dh = flat ? 1 : window.dilations[0], dw = window.dilations[last], ph = flat ? 0 : window.pads[0], pw = window.pads[last];
  const FloatView fx(x), fw(w);
  std::vector<float> out(static_cast<size_t>(elements(dims)), 0.0f);
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t o = 0; o < outputs; ++o) {
      const int64_t part = o / per_group;
      float* plane = out.data() + (n * outputs + o) * oh * ow;
      for (int64_t c = part * (channels / group); c < (part + 1) * (channels / group); ++c)
        for (int64_t y = 0; y < kh; ++y)
          for (int64_t z = 0; z < kw; ++z) {
            const float weight = fw[((c * per_group + o % per_group) * kh + y) * kw + z];
            for (int64_t h = 0; h < ih; ++h) {
              const int64_t th = h * sh - ph + y * dh;
              if (th < 0 || th >= oh) continue;
              const float* source = fx.data() + ((n * channels + c) * ih + h) * iw;
              for (int64_t v = 0; v < iw; ++v) {
                const int64_t tw = v * sw - pw + z * dw;
                if (tw >= 0 && tw < ow) plane[th * ow + tw] += weight * source[v];
              }
            }
          }
    }
  if (context.has(2)) {
    const FloatView bias(context.input(2));
    for (size_t i = 0; i < out.size(); ++i) out[i] += bias[static_cast<int64_t>(i) / (oh * ow) % outputs];
  }
  context.set(0, from_floats(x.dtype(), dims, out));
}

/// output_shape and auto_pad become explicit pads.
void import_conv_transpose(ImportContext& context) {
  Attrs& attrs = context.attrs();
  const Shape &x = context.input(0)->type.shape, &w = context.input(1)->type.shape;
  const size_t spatial = x.rank() - 2;
  Window window = window_of(attrs, spatial, kernel_of(w));
  const std::vector<int64_t> extra = extra_of(attrs, spatial);
  const std::string mode = attrs.has("auto_pad") ? attrs.text("auto_pad") : "NOTSET";
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (attrs.has("output_shape") || same) {
    std::vector<int64_t> wanted;
    if (attrs.has("output_shape")) wanted = attrs.integers("output_shape");
    if (wanted.size() > spatial) wanted.erase(wanted.begin(), wanted.end() - static_cast<std::ptrdiff_t>(spatial));
    for (size_t i = 0; i < spatial; ++i) {
      HONE_CHECK(x[i + 2].is_constant(), "ConvTranspose with output_shape or auto_pad needs fixed sizes");
      const int64_t size = x[i + 2].value(), target = wanted.empty() ? size * window.strides[i] : wanted.at(i);
      const int64_t total = window.strides[i] * (size - 1) + extra[i] + window.dilations[i] * (window.kernel[i] - 1) + 1 - target;
      const int64_t half = total / 2;
      window.pads[i] = mode == "SAME_UPPER" ? half : total - half;
      window.pads[i + spatial] = total - window.pads[i];
    }
  } else if (mode == "VALID") {
    std::fill(window.pads.begin(), window.pads.end(), 0);
  }
  attrs.set("kernel_shape", window.kernel);
  attrs.set("strides", window.strides);
  attrs.set("dilations", window.dilations);
  attrs.set("pads", window.pads);
  attrs.set("output_padding", extra);
  attrs.set("auto_pad", std::string("NOTSET"));
  attrs.erase("output_shape");
  context.set_output(0, context.add("ConvTranspose", {context.input(0), context.input(1), context.inputs() > 2 ? context.input(2) : nullptr}, attrs)->output());
}

}  // namespace

const OpDef conv_transpose = [] {
  OpDef op{.name = "ConvTranspose", .attrs = window_attrs(), .min_inputs = 2, .max_inputs = 3, .infer = infer_conv_transpose, .eval = eval_conv_transpose,
           .onnx = {{"ConvTranspose", 1, 1 << 20, import_conv_transpose}}};
  op.attrs.push_back({"group", AttrKind::integer, int64_t{1}});
  op.attrs.push_back({"output_padding", AttrKind::integers});
  return op;
}();

}  // namespace hone::ops
