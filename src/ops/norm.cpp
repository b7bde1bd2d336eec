// SPDX-License-Identifier: Apache-2.0
//
// Normalisations. Statistics are taken in double.
#include <cmath>

#include "ops/ops.h"
#include "ops/support.h"

namespace hone::ops {
namespace {

void infer_same(InferContext& context) {
  require_float(context, 0);
  context.set(0, context.dtype(0), context.shape(0));
}

struct Moments {
  double mean, variance;
};
Moments moments(std::span<const float> values) {
  double sum = 0, squares = 0;
  for (const float v : values) sum += v;
  const double mean = sum / static_cast<double>(values.size());
  for (const float v : values) squares += (v - mean) * (v - mean);
  return {mean, squares / static_cast<double>(values.size())};
}

void eval_batch_norm(EvalContext& context) {
  const Tensor& x = context.input(0);
  const FloatView in(x), scale(context.input(1)), bias(context.input(2)), mean(context.input(3)), variance(context.input(4));
  const double epsilon = context.attrs().real("epsilon");
  const AxisSplit s = split_at(x.dims(), x.dims().size() > 1 ? 1 : 0);
  std::vector<float> out(static_cast<size_t>(x.size()));
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t c = x.dims().size() > 1 ? i / s.inner % s.size : 0;
    out[static_cast<size_t>(i)] = static_cast<float>((in[i] - mean[c]) / std::sqrt(variance[c] + epsilon) * scale[c] + bias[c]);
  }
  context.set(0, from_floats(x.dtype(), x.dims(), out));
}

void infer_batch_norm(InferContext& context) {
  HONE_CHECK(context.attrs().integer("training_mode") == 0, "BatchNormalization in training mode is not supported");
  infer_same(context);
}

/// Rows of `count` elements normalised by their own moments; `apply(row, i)` gives scale and shift.
template <typename Apply>
Tensor normalize_rows(const Tensor& x, int64_t count, double epsilon, const Apply& apply) {
  const FloatView in(x);
  std::vector<float> out(static_cast<size_t>(x.size()));
  for (int64_t row = 0; count > 0 && row < x.size() / count; ++row) {
    const Moments m = moments({in.data() + row * count, static_cast<size_t>(count)});
    const double inverse = 1 / std::sqrt(m.variance + epsilon);
    for (int64_t i = 0; i < count; ++i) {
      const auto [scale, shift] = apply(row, i);
      out[static_cast<size_t>(row * count + i)] = static_cast<float>((in[row * count + i] - m.mean) * inverse * scale + shift);
    }
  }
  return from_floats(x.dtype(), x.dims(), out);
}

void eval_instance_norm(EvalContext& context) {
  const Tensor& x = context.input(0);
  const FloatView scale(context.input(1)), bias(context.input(2));
  const int64_t channels = x.dims()[1];
  context.set(0, normalize_rows(x, elements(std::span(x.dims()).subspan(2)), context.attrs().real("epsilon"),
                                [&](int64_t row, int64_t) { return std::pair<double, double>(scale[row % channels], bias[row % channels]); }));
}

void eval_group_norm(EvalContext& context) {
  const Tensor& x = context.input(0);
  const FloatView scale(context.input(1)), bias(context.input(2));
  const int64_t groups = context.attrs().integer("num_groups"), channels = x.dims()[1], area = elements(std::span(x.dims()).subspan(2)), per_group = channels / groups;
  const bool per_channel = context.input(1).size() == channels;
  context.set(0, normalize_rows(x, per_group * area, context.attrs().real("epsilon"), [&](int64_t row, int64_t i) {
                const int64_t c = per_channel ? row % groups * per_group + i / area : row % groups;
                return std::pair<double, double>(scale[c], bias[c]);
              }));
}

void infer_layer_norm(InferContext& context) {
  require_float(context, 0);
  const Shape& x = context.shape(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), x.rank());
  context.set(0, context.dtype(0), x);
  Shape reduced = x;
  for (size_t i = axis; i < x.rank(); ++i) reduced[i] = Dim(1);
  for (size_t i = 1; i < context.outputs(); ++i) context.set(i, DType::f32, reduced);
}

/// Scale and bias may broadcast over the normalised axes; they are indexed from the end.
float at_end(const FloatView& values, int64_t size, int64_t i) { return values[i % size]; }

void eval_layer_norm(EvalContext& context) {
  const Tensor& x = context.input(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), x.dims().size());
  const int64_t count = elements(std::span(x.dims()).subspan(axis));
  const double epsilon = context.attrs().real("epsilon");
  const FloatView scale(context.input(1));
  std::vector<float> zeros(1, 0.0f);
  const Tensor none = Tensor::of<float>({1}, std::span<const float>(zeros));
  const Tensor& bias_tensor = context.has(2) ? context.input(2) : none;
  const FloatView bias(bias_tensor);
  context.set(0, normalize_rows(x, count, epsilon, [&](int64_t, int64_t i) {
                return std::pair<double, double>(at_end(scale, context.input(1).size(), i), at_end(bias, bias_tensor.size(), i));
              }));
  if (context.outputs() < 2) return;
  const FloatView in(x);
  std::vector<float> means, inverses;
  for (int64_t row = 0; row < x.size() / count; ++row) {
    const Moments m = moments({in.data() + row * count, static_cast<size_t>(count)});
    means.push_back(static_cast<float>(m.mean));
    inverses.push_back(static_cast<float>(1 / std::sqrt(m.variance + epsilon)));
  }
  Dims dims = x.dims();
  for (size_t i = axis; i < dims.size(); ++i) dims[i] = 1;
  context.set(1, Tensor::of<float>(dims, std::span<const float>(means)));
  if (context.outputs() > 2) context.set(2, Tensor::of<float>(dims, std::span<const float>(inverses)));
}

void infer_rms_norm(InferContext& context) {
  require_float(context, 0);
  normalize_axis(context.attrs().integer("axis"), context.rank(0));
  context.set(0, context.dtype(0), context.shape(0));
}

void eval_rms_norm(EvalContext& context) {
  const Tensor& x = context.input(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), x.dims().size());
  const int64_t count = elements(std::span(x.dims()).subspan(axis));
  const FloatView in(x), scale(context.input(1));
  std::vector<float> out(static_cast<size_t>(x.size()));
  for (int64_t row = 0; row < x.size() / count; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) squares += static_cast<double>(in[row * count + i]) * in[row * count + i];
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(count) + context.attrs().real("epsilon"));
    for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(row * count + i)] = static_cast<float>(in[row * count + i] * inverse * at_end(scale, context.input(1).size(), i));
  }
  context.set(0, from_floats(x.dtype(), x.dims(), out));
}

void eval_lp_norm(EvalContext& context) {
  const Tensor& x = context.input(0);
  const AxisSplit s = split_at(x.dims(), normalize_axis(context.attrs().integer("axis"), x.dims().size()));
  const bool squares = context.attrs().integer("p") == 2;
  const FloatView in(x);
  std::vector<float> out(static_cast<size_t>(x.size()));
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      double norm = 0;
      const auto at = [&](int64_t k) { return (o * s.size + k) * s.inner + i; };
      for (int64_t k = 0; k < s.size; ++k) norm += squares ? static_cast<double>(in[at(k)]) * in[at(k)] : std::abs(in[at(k)]);
      norm = squares ? std::sqrt(norm) : norm;
      for (int64_t k = 0; k < s.size; ++k) out[static_cast<size_t>(at(k))] = norm == 0 ? 0 : static_cast<float>(in[at(k)] / norm);
    }
  context.set(0, from_floats(x.dtype(), x.dims(), out));
}

void eval_lrn(EvalContext& context) {
  const Tensor& x = context.input(0);
  const AxisSplit s = split_at(x.dims(), 1);
  const int64_t size = context.attrs().integer("size"), before = (size - 1) / 2, after = size - 1 - before;
  const double alpha = context.attrs().real("alpha"), beta = context.attrs().real("beta"), bias = context.attrs().real("bias");
  const FloatView in(x);
  std::vector<float> out(static_cast<size_t>(x.size()));
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t c = 0; c < s.size; ++c)
      for (int64_t i = 0; i < s.inner; ++i) {
        double squares = 0;
        for (int64_t k = std::max<int64_t>(0, c - before); k <= std::min(s.size - 1, c + after); ++k) {
          const float v = in[(o * s.size + k) * s.inner + i];
          squares += static_cast<double>(v) * v;
        }
        const int64_t at = (o * s.size + c) * s.inner + i;
        out[static_cast<size_t>(at)] = static_cast<float>(in[at] / std::pow(bias + alpha / static_cast<double>(size) * squares, beta));
      }
  context.set(0, from_floats(x.dtype(), x.dims(), out));
}

AttrSpec epsilon() { return {"epsilon", AttrKind::real, 1e-5}; }

void import_batch_norm(ImportContext& context) {
  std::vector<Value*> operands;
  for (size_t i = 0; i < 5; ++i) operands.push_back(context.input(i));
  Attrs attrs;
  for (const char* name : {"epsilon", "training_mode"})
    if (const AttrValue* value = context.attrs().find(name)) attrs.set(name, *value);
  for (size_t i = 1; i < context.outputs(); ++i) HONE_CHECK(!context.output_used(i), "BatchNormalization in training mode is not supported");
  context.set_output(0, context.add("BatchNormalization", std::move(operands), std::move(attrs))->output());
}

}  // namespace

const OpDef batch_normalization{.name = "BatchNormalization", .attrs = {epsilon(), {"training_mode", AttrKind::integer, int64_t{0}}}, .min_inputs = 5, .max_inputs = 5,
                                .infer = infer_batch_norm, .eval = eval_batch_norm, .onnx = {{"BatchNormalization", 7, 1 << 20, import_batch_norm}}};
const OpDef instance_normalization{.name = "InstanceNormalization", .attrs = {epsilon()}, .min_inputs = 3, .max_inputs = 3, .infer = infer_same, .eval = eval_instance_norm, .onnx = {{"InstanceNormalization", 6}}};
const OpDef group_normalization{.name = "GroupNormalization", .attrs = {epsilon(), {"num_groups", AttrKind::integer, std::nullopt, true}, {"stash_type", AttrKind::integer, int64_t{1}}},
                                .min_inputs = 3, .max_inputs = 3, .infer = infer_same, .eval = eval_group_norm, .onnx = {{"GroupNormalization", 18}}};
const OpDef layer_normalization{.name = "LayerNormalization", .attrs = {epsilon(), {"axis", AttrKind::integer, int64_t{-1}}, {"stash_type", AttrKind::integer, int64_t{1}}},
                                .min_inputs = 2, .max_inputs = 3, .infer = infer_layer_norm, .eval = eval_layer_norm, .onnx = {{"LayerNormalization", 17}}};
const OpDef rms_normalization{.name = "RMSNormalization", .attrs = {epsilon(), {"axis", AttrKind::integer, int64_t{-1}}, {"stash_type", AttrKind::integer, int64_t{1}}},
                              .min_inputs = 2, .max_inputs = 2, .infer = infer_rms_norm, .eval = eval_rms_norm, .onnx = {{"RMSNormalization", 23}}};
const OpDef lp_normalization{.name = "LpNormalization", .attrs = {{"axis", AttrKind::integer, int64_t{-1}}, {"p", AttrKind::integer, int64_t{2}}}, .infer = infer_same, .eval = eval_lp_norm, .onnx = {{"LpNormalization"}}};
const OpDef lrn{.name = "LRN", .attrs = {{"alpha", AttrKind::real, 1e-4}, {"beta", AttrKind::real, 0.75}, {"bias", AttrKind::real, 1.0}, {"size", AttrKind::integer, std::nullopt, true}}, .infer = infer_same, .eval = eval_lrn, .onnx = {{"LRN"}}};

}  // namespace hone::ops
