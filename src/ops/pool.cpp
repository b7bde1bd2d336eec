// SPDX-License-Identifier: Apache-2.0
//
// Pooling over windows and over whole planes.
#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone::ops {
namespace {

std::vector<AttrSpec> pool_attrs(std::vector<AttrSpec> more) {
  std::vector<AttrSpec> attrs = window_attrs();
  attrs.push_back({"ceil_mode", AttrKind::integer, int64_t{0}});
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

void infer_pool(InferContext& context) {
  const Shape& x = context.shape(0);
  HONE_CHECK(x.rank() >= 3, "a pooling needs rank 3 or more, not {}", x.rank());
  const Window window = window_of(context.attrs(), x.rank() - 2);
  Shape result{x[0], x[1]};
  for (size_t i = 2; i < x.rank(); ++i) result.push_back(window_output(x[i], window, i - 2));
  context.set(0, context.dtype(0), result);
  if (context.outputs() > 1) context.set(1, DType::i64, result);
}

/// Visits every output element with the list of input offsets inside its window.
template <typename Visit>
void for_each_window(const Dims& x, const Dims& y, const Window& w, const Visit& visit_window) {
  const size_t spatial = w.kernel.size();
  const int64_t planes = x[0] * x[1], area = elements(std::span(y).subspan(2)), taps = elements(w.kernel), in_area = elements(std::span(x).subspan(2));
  std::vector<int64_t> offsets;
  for (int64_t o = 0; o < area; ++o) {
    offsets.clear();
    int64_t padded = 0;                               // window elements inside data and padding
    for (int64_t t = 0; t < taps; ++t) {
      int64_t rest_o = o, rest_t = t, offset = 0, stride = 1;
      bool inside = true, in_padding = true;
      for (size_t i = spatial; i-- > 0;) {
        const int64_t at = rest_o % y[i + 2] * w.strides[i] - w.pads[i] + rest_t % w.kernel[i] * w.dilations[i];
        rest_o /= y[i + 2];
        rest_t /= w.kernel[i];
        inside &= at >= 0 && at < x[i + 2];
        in_padding &= at < x[i + 2] + w.pads[i + spatial];
        offset += at * stride;
        stride *= x[i + 2];
      }
      if (inside) offsets.push_back(offset);
      padded += in_padding;
    }
    for (int64_t p = 0; p < planes; ++p) visit_window(p * area + o, p * in_area, offsets, padded);
  }
}

Dims pooled_dims(const Tensor& x, const Window& window) {
  Dims dims{x.dims()[0], x.dims()[1]};
  for (size_t i = 2; i < x.dims().size(); ++i) dims.push_back(window_output(x.dims()[i], window, i - 2));
  return dims;
}

void eval_max_pool(EvalContext& context) {
  const Tensor& x = context.input(0);
  const Window window = window_of(context.attrs(), x.dims().size() - 2);
  const Dims dims = pooled_dims(x, window);
  const FloatView in(x);
  std::vector<float> out(static_cast<size_t>(elements(dims)));
  std::vector<int64_t> indices(out.size());
  for_each_window(x.dims(), dims, window, [&](int64_t o, int64_t base, const std::vector<int64_t>& offsets, int64_t) {
    float best = -INFINITY;
    int64_t at = base;
    for (const int64_t offset : offsets)
      if (in[base + offset] > best || std::isnan(in[base + offset])) {
        best = in[base + offset];
        at = base + offset;
      }
    out[static_cast<size_t>(o)] = best;
    indices[static_cast<size_t>(o)] = at;
  });
  if (is_float(x.dtype())) context.set(0, from_floats(x.dtype(), dims, out));
  else {
    TensorBuilder builder(x.dtype(), dims);
    visit(x.dtype(), [&]<typename T>() {
      for (size_t i = 0; i < out.size(); ++i)
        if constexpr (std::is_arithmetic_v<T>) builder.data<T>()[i] = static_cast<T>(out[i]);
    });
    context.set(0, builder.finish());
  }
  if (context.outputs() < 2) return;
  if (context.attrs().integer("storage_order") == 1 && dims.size() == 4) {
    const int64_t h = x.dims()[2], w = x.dims()[3];
    for (int64_t& index : indices) index = index / (h * w) * (h * w) + index % w * h + index % (h * w) / w;
  }
  context.set(1, Tensor::of<int64_t>(dims, std::span<const int64_t>(indices)));
}

void eval_average_pool(EvalContext& context) {
  const Tensor& x = context.input(0);
  const Window window = window_of(context.attrs(), x.dims().size() - 2);
  const Dims dims = pooled_dims(x, window);
  const bool with_padding = context.attrs().integer("count_include_pad") != 0;
  const FloatView in(x);
  std::vector<float> out(static_cast<size_t>(elements(dims)));
  for_each_window(x.dims(), dims, window, [&](int64_t o, int64_t base, const std::vector<int64_t>& offsets, int64_t padded) {
    double sum = 0;
    for (const int64_t offset : offsets) sum += in[base + offset];
    out[static_cast<size_t>(o)] = static_cast<float>(sum / static_cast<double>(with_padding ? padded : static_cast<int64_t>(offsets.size())));
  });
  context.set(0, from_floats(x.dtype(), dims, out));
}

void eval_lp_pool(EvalContext& context) {
  const Tensor& x = context.input(0);
  const Window window = window_of(context.attrs(), x.dims().size() - 2);
  const Dims dims = pooled_dims(x, window);
  const auto p = static_cast<double>(context.attrs().integer("p"));
  const FloatView in(x);
  std::vector<float> out(static_cast<size_t>(elements(dims)));
  for_each_window(x.dims(), dims, window, [&](int64_t o, int64_t base, const std::vector<int64_t>& offsets, int64_t) {
    double sum = 0;
    for (const int64_t offset : offsets) sum += std::pow(std::abs(in[base + offset]), p);
    out[static_cast<size_t>(o)] = static_cast<float>(std::pow(sum, 1 / p));
  });
  context.set(0, from_floats(x.dtype(), dims, out));
}

void infer_global(InferContext& context) {
  const Shape& x = context.shape(0);
  HONE_CHECK(x.rank() >= 2, "a global pooling needs rank 2 or more, not {}", x.rank());
  Shape result{x[0], x[1]};
  for (size_t i = 2; i < x.rank(); ++i) result.push_back(Dim(1));
  context.set(0, context.dtype(0), result);
}

template <typename Reduce>
void eval_global(EvalContext& context, const Reduce& reduce) {
  const Tensor& x = context.input(0);
  Dims dims = x.dims();
  for (size_t i = 2; i < dims.size(); ++i) dims[i] = 1;
  const int64_t area = elements(std::span(x.dims()).subspan(2));
  const FloatView in(x);
  std::vector<float> out(static_cast<size_t>(elements(dims)));
  for (size_t i = 0; i < out.size(); ++i) out[i] = reduce(std::span(in.data() + static_cast<int64_t>(i) * area, static_cast<size_t>(area)));
  context.set(0, from_floats(x.dtype(), dims, out));
}
void eval_global_average(EvalContext& context) {
  eval_global(context, [](std::span<const float> plane) {
    double sum = 0;
    for (const float value : plane) sum += value;
    return static_cast<float>(sum / static_cast<double>(plane.size()));
  });
}
void eval_global_max(EvalContext& context) {
  eval_global(context, [](std::span<const float> plane) { return *std::max_element(plane.begin(), plane.end()); });
}
void eval_global_lp(EvalContext& context) {
  const auto p = static_cast<double>(context.attrs().integer("p"));
  eval_global(context, [p](std::span<const float> plane) {
    double sum = 0;
    for (const float value : plane) sum += std::pow(std::abs(value), p);
    return static_cast<float>(std::pow(sum, 1 / p));
  });
}

template <const OpDef& Op>
void import_pool(ImportContext& context) {
  complete_window(context, {});
  const Node* node = context.add(Op.name, {context.input(0)}, context.attrs(), context.outputs());
  for (size_t i = 0; i < context.outputs(); ++i) context.set_output(i, node->output(i));
}

}  // namespace

const OpDef max_pool{.name = "MaxPool", .attrs = pool_attrs({{"storage_order", AttrKind::integer, int64_t{0}}}), .infer = infer_pool, .eval = eval_max_pool, .onnx = {{"MaxPool", 1, 1 << 20, import_pool<max_pool>}}};
const OpDef average_pool{.name = "AveragePool", .attrs = pool_attrs({{"count_include_pad", AttrKind::integer, int64_t{0}}}), .infer = infer_pool, .eval = eval_average_pool, .onnx = {{"AveragePool", 1, 1 << 20, import_pool<average_pool>}}};
const OpDef lp_pool{.name = "LpPool", .attrs = pool_attrs({{"p", AttrKind::integer, int64_t{2}}}), .infer = infer_pool, .eval = eval_lp_pool, .onnx = {{"LpPool", 2, 1 << 20, import_pool<lp_pool>}}};
const OpDef global_average_pool{.name = "GlobalAveragePool", .infer = infer_global, .eval = eval_global_average, .onnx = {{"GlobalAveragePool"}}};
const OpDef global_max_pool{.name = "GlobalMaxPool", .infer = infer_global, .eval = eval_global_max, .onnx = {{"GlobalMaxPool"}}};
const OpDef global_lp_pool{.name = "GlobalLpPool", .attrs = {{"p", AttrKind::integer, int64_t{2}}}, .infer = infer_global, .eval = eval_global_lp, .onnx = {{"GlobalLpPool", 2}}};

}  // namespace hone::ops
