// SPDX-License-Identifier: Apache-2.0
//
// Normalisations. All of them compute in double: a mean and a variance over some group of elements, then scale and shift.
#include <cmath>

#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments_of(std::span<const double> values) {
  Moments m;
  for (const double value : values) m.mean += value;
  m.mean /= static_cast<double>(values.size());
  for (const double value : values) m.variance += (value - m.mean) * (value - m.mean);
  m.variance /= static_cast<double>(values.size());
  return m;
}

void check_channel_operands(const InferContext& context, size_t count) {
  HONE_CHECK(context.rank(0) >= 2, "the input has rank {} where at least 2 is needed", context.rank(0));
  for (size_t i = 1; i <= count; ++i) {
    HONE_CHECK(context.rank(i) == 1, "operand {} has rank {} where 1 is needed", i, context.rank(i));
    check_equal(context.shape(i)[0], context.shape(0)[1], "sizes of a per-channel operand and the channels");
  }
}

// ---- BatchNormalization ----

void infer_batch_norm(InferContext& context) {
  check_channel_operands(context, 4);
  infer_same(context);
}

void eval_batch_norm(EvalContext& context) {
  const Tensor& x = context.input(0);
  const auto scale = read_doubles(context.input(1)), bias = read_doubles(context.input(2)),
             mean = read_doubles(context.input(3)), variance = read_doubles(context.input(4));
  std::vector<double> y = read_doubles(x);
  const AxisView view(x.dims(), 1);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t c = i / static_cast<size_t>(view.inner) % static_cast<size_t>(view.length);
    y[i] = (y[i] - mean[c]) / std::sqrt(variance[c] + context.attrs().real("epsilon")) * scale[c] + bias[c];
  }
  context.set(0, write_doubles(x.dtype(), x.dims(), y));
}

void import_batch_norm(ImportContext& context) {
  HONE_CHECK(context.inputs() == 5, "BatchNormalization needs 5 operands, {} are given", context.inputs());
  const bool training = context.opset() < 7 ? context.attrs().integer_or("is_test", 0) == 0 && context.outputs() > 1
                                            : context.attrs().integer_or("training_mode", 0) != 0;
  HONE_CHECK(context.attrs().integer_or("spatial", 1) != 0, "BatchNormalization with spatial=0 is not known");
  const double epsilon = context.attrs().has("epsilon") ? context.attrs().real("epsilon") : 1e-5;
  std::vector<Value*> inputs;
  for (size_t i = 0; i < 5; ++i) inputs.push_back(context.input(i));
  if (!training)
    return context.set_output(0,
                              context.add("BatchNormalization", std::move(inputs), {{"epsilon", epsilon}})->output());
  const double momentum = context.attrs().has("momentum") ? context.attrs().real("momentum") : 0.9;
  const Node* node =
      context.add("BatchNormalizationTraining", std::move(inputs), {{"epsilon", epsilon}, {"momentum", momentum}});
  for (size_t i = 0; i < 3; ++i) context.set_output(i, node->outputs[i]);
}

// ---- In training the moments are those of the batch, and running ones are handed on ----

void infer_batch_norm_training(InferContext& context) {
  check_channel_operands(context, 4);
  infer_same(context);
  for (size_t i = 1; i < 3; ++i) context.set(i, context.dtype(2 + i), context.shape(2 + i));
}

void eval_batch_norm_training(EvalContext& context) {
  const Tensor& x = context.input(0);
  const auto scale = read_doubles(context.input(1)), bias = read_doubles(context.input(2));
  std::vector<double> mean = read_doubles(context.input(3)), variance = read_doubles(context.input(4)),
                      y = read_doubles(x);
  const AxisView view(x.dims(), 1);
  const double momentum = context.attrs().real("momentum");
  for (int64_t c = 0; c < view.length; ++c) {
    std::vector<size_t> own;
    std::vector<double> values;
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t i = 0; i < view.inner; ++i) {
        own.push_back(static_cast<size_t>((o * view.length + c) * view.inner + i));
        values.push_back(y[own.back()]);
      }
    const Moments m = moments_of(values);
    const auto at = static_cast<size_t>(c);
    for (const size_t i : own)
      y[i] = (y[i] - m.mean) / std::sqrt(m.variance + context.attrs().real("epsilon")) * scale[at] + bias[at];
    mean[at] = mean[at] * momentum + m.mean * (1 - momentum);
    variance[at] = variance[at] * momentum + m.variance * (1 - momentum);
  }
  context.set(0, write_doubles(x.dtype(), x.dims(), y));
  context.set(1, write_doubles(context.input(3).dtype(), context.input(3).dims(), mean));
  context.set(2, write_doubles(context.input(4).dtype(), context.input(4).dims(), variance));
}

// ---- InstanceNormalization, GroupNormalization ----

void infer_instance_norm(InferContext& context) {
  check_channel_operands(context, 2);
  infer_same(context);
}

/// Normalises `groups` equal runs of each image; scale and bias are per channel.
void eval_groups(EvalContext& context, int64_t groups) {
  const Tensor& x = context.input(0);
  const auto scale = read_doubles(context.input(1)), bias = read_doubles(context.input(2));
  std::vector<double> y = read_doubles(x);
  const AxisView view(x.dims(), 1);
  const auto run = static_cast<size_t>(view.length / groups * view.inner);
  for (size_t start = 0; start < y.size(); start += run) {
    const Moments m = moments_of(std::span(y).subspan(start, run));
    for (size_t i = start; i < start + run; ++i) {
      const size_t c = i / static_cast<size_t>(view.inner) % static_cast<size_t>(view.length);
      y[i] = (y[i] - m.mean) / std::sqrt(m.variance + context.attrs().real("epsilon")) * scale[c] + bias[c];
    }
  }
  context.set(0, write_doubles(x.dtype(), x.dims(), y));
}

void eval_instance_norm(EvalContext& context) { eval_groups(context, context.input(0).dims()[1]); }

void infer_group_norm(InferContext& context) {
  check_channel_operands(context, 2);
  const int64_t groups = context.attrs().integer("num_groups");
  const Dim& channels = context.shape(0)[1];
  HONE_CHECK(groups > 0 && (!channels.is_constant() || channels.value() % groups == 0),
             "{} channels do not divide into {} groups", channels.text(), groups);
  infer_same(context);
}
void eval_group_norm(EvalContext& context) { eval_groups(context, context.attrs().integer("num_groups")); }

/// Opsets 18 to 20 gave one scale per group instead of per channel.
void import_grouped_scale(ImportContext& context) {
  const int64_t groups = context.attrs().integer("num_groups");
  HONE_CHECK(context.input(0)->type.shape.rank() >= 2, "GroupNormalization reads tensors of rank 2 or more, not {}",
             context.input(0)->type.shape.rank());
  const Dim channels = context.input(0)->type.shape[1];
  HONE_CHECK(channels.is_constant() && groups > 0 && channels.value() % groups == 0,
             "{} channels do not divide into {} groups", channels.text(), groups);
  const auto sizes = [&](std::initializer_list<int64_t> list) {
    return context.constant(Tensor::of<int64_t>({static_cast<int64_t>(list.size())}, list));
  };
  const auto spread = [&](Value* value) {
    Value* column = context.add("Reshape", {value, sizes({groups, 1})})->output();
    Value* rows = context.add("Expand", {column, sizes({groups, channels.value() / groups})})->output();
    return context.add("Reshape", {rows, sizes({channels.value()})})->output();
  };
  Value* scale = spread(context.input(1));
  Value* bias = spread(context.input(2));
  context.set_output(0, context.add("GroupNormalization", {context.input(0), scale, bias}, context.attrs())->output());
}

// ---- LayerNormalization, RMSNormalization ----

Shape normalized_axes(const InferContext& context, size_t axis) {
  const Shape& x = context.shape(0);
  return Shape(std::vector<Dim>(x.begin() + static_cast<std::ptrdiff_t>(axis), x.end()));
}

void infer_layer_norm(InferContext& context) {
  const size_t axis = normalize_axis(context.attrs().integer("axis"), context.rank(0));
  for (size_t i = 1; i < context.inputs(); ++i)
    if (context.has(i))
      HONE_CHECK(broadcast(normalized_axes(context, axis), context.shape(i)).rank() <= context.rank(0),
                 "the scale's rank is too large");
  infer_same(context);
  Shape reduced = context.shape(0);
  for (size_t i = axis; i < reduced.rank(); ++i) reduced[i] = Dim(1);
  for (size_t i = 1; i < context.outputs(); ++i) context.set(i, DType::f32, reduced);
}

void eval_rows(EvalContext& context, bool centered) {
  const Tensor& x = context.input(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), x.dims().size());
  const std::span<const int64_t> inner(x.dims().begin() + static_cast<std::ptrdiff_t>(axis), x.dims().end());
  const auto row = static_cast<size_t>(elements(inner));
  const auto operand = [&](size_t i, double fallback) {
    std::vector<double> values(row, fallback);
    if (!context.has(i)) return values;
    const std::vector<double> given = read_doubles(context.input(i));
    HONE_CHECK(given.size() <= row, "a scale of more than one row is not known");
    HONE_CHECK(row == 0 || !given.empty(), "the scale of a row of {} is empty", row);
    Dims dims = context.input(i).dims();
    while (dims.size() > inner.size() && dims.front() == 1) dims.erase(dims.begin());
    for (size_t k = 0; k < row; ++k)
      values[k] = given[static_cast<size_t>(broadcast_offset(inner, dims, static_cast<int64_t>(k)))];
    return values;
  };
  const std::vector<double> scale = operand(1, 1), bias = operand(2, 0);
  std::vector<double> y = read_doubles(x), means, inverses;
  for (size_t start = 0; start < y.size(); start += row) {
    const Moments m = moments_of(std::span(y).subspan(start, row));
    const double mean = centered ? m.mean : 0, power = centered ? m.variance : m.variance + m.mean * m.mean;
    const double inverse = 1 / std::sqrt(power + context.attrs().real("epsilon"));
    for (size_t k = 0; k < row; ++k) y[start + k] = (y[start + k] - mean) * inverse * scale[k] + bias[k];
    means.push_back(mean);
    inverses.push_back(inverse);
  }
  Dims reduced = x.dims();
  for (size_t i = axis; i < reduced.size(); ++i) reduced[i] = 1;
  context.set(0, write_doubles(x.dtype(), x.dims(), y));
  if (context.outputs() > 1) context.set(1, write_doubles(DType::f32, reduced, means));
  if (context.outputs() > 2) context.set(2, write_doubles(DType::f32, reduced, inverses));
}

void eval_layer_norm(EvalContext& context) { eval_rows(context, true); }
void eval_rms_norm(EvalContext& context) { eval_rows(context, false); }

// ---- the others ----

void infer_axis(InferContext& context) {
  normalize_axis(context.attrs().integer("axis"), context.rank(0));
  infer_same(context);
}

void eval_lp_norm(EvalContext& context) {
  const Tensor& x = context.input(0);
  const AxisView view(x.dims(), normalize_axis(context.attrs().integer("axis"), x.dims().size()));
  const auto p = static_cast<double>(context.attrs().integer("p"));
  std::vector<double> y = read_doubles(x);
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.inner; ++i) {
      const auto at = [&](int64_t k) -> double& {
        return y[static_cast<size_t>((o * view.length + k) * view.inner + i)];
      };
      double sum = 0;
      for (int64_t k = 0; k < view.length; ++k) sum += std::pow(std::fabs(at(k)), p);
      const double norm = std::pow(sum, 1 / p);
      for (int64_t k = 0; k < view.length; ++k) at(k) = norm == 0 ? 0 : at(k) / norm;
    }
  }
  context.set(0, write_doubles(x.dtype(), x.dims(), y));
}

void infer_lrn(InferContext& context) {
  HONE_CHECK(context.rank(0) >= 2, "LRN's input has rank {} where at least 2 is needed", context.rank(0));
  HONE_CHECK(context.attrs().integer("size") >= 1, "LRN sums over {} channels", context.attrs().integer("size"));
  infer_same(context);
}

void eval_lrn(EvalContext& context) {
  const Tensor& x = context.input(0);
  const AxisView view(x.dims(), 1);
  const int64_t size = context.attrs().integer("size"), before = (size - 1) / 2, after = size - 1 - before;
  const double alpha = context.attrs().real("alpha"), beta = context.attrs().real("beta"),
               bias = context.attrs().real("bias");
  const std::vector<double> data = read_doubles(x);
  std::vector<double> y(data.size());
  for (int64_t i = 0; i < static_cast<int64_t>(data.size()); ++i) {
    const int64_t c = i / view.inner % view.length;
    double sum = 0;
    for (int64_t k = std::max<int64_t>(0, c - before); k <= std::min(view.length - 1, c + after); ++k) {
      const double value = data[static_cast<size_t>(i + (k - c) * view.inner)];
      sum += value * value;
    }
    y[static_cast<size_t>(i)] =
        data[static_cast<size_t>(i)] / std::pow(bias + alpha / static_cast<double>(size) * sum, beta);
  }
  context.set(0, write_doubles(x.dtype(), x.dims(), y));
}

/// (x - mean) / (deviation + 1e-9) over the axes, written with the operators that there are.
void import_mean_variance(ImportContext& context) {
  std::vector<int64_t> axes{0, 2, 3};
  if (context.attrs().has("axes")) axes = context.attrs().integers("axes");
  Value* x = context.input(0);
  Value* over = context.constant(Tensor::of<int64_t>({static_cast<int64_t>(axes.size())}, axes));
  Value* centered = context.add("Sub", {x, context.add("ReduceMean", {x, over})->output()})->output();
  Value* variance = context.add("ReduceMean", {context.add("Mul", {centered, centered})->output(), over})->output();
  Value* deviation =
      context.add("Add", {context.add("Sqrt", {variance})->output(), context.constant(scalar_of(x->type.dtype, 1e-9))})
          ->output();
  context.set_output(0, context.add("Div", {centered, deviation})->output());
}

}  // namespace

const OpDef ops::batch_normalization{.name = "BatchNormalization",
                                     .attrs = {real_attr("epsilon", 1e-5)},
                                     .min_inputs = 5,
                                     .max_inputs = 5,
                                     .infer = infer_batch_norm,
                                     .eval = eval_batch_norm,
                                     .onnx = {{"BatchNormalization", 1, kEveryLater, import_batch_norm},
                                              {"MeanVarianceNormalization", 9, kEveryLater, import_mean_variance}},
                                     .traits = {.weights = WeightRoles::scale_and_shift}};
const OpDef ops::instance_normalization{.name = "InstanceNormalization",
                                        .attrs = {real_attr("epsilon", 1e-5)},
                                        .min_inputs = 3,
                                        .max_inputs = 3,
                                        .infer = infer_instance_norm,
                                        .eval = eval_instance_norm,
                                        .onnx = {{"InstanceNormalization"}},
                                        .traits = {.few_bits = FewBits::follows,
                                                   .weights = WeightRoles::scale_and_shift,
                                                   .layer = "Normalization",
                                                   .entries_apart = first_apart}};
const OpDef ops::group_normalization{
    .name = "GroupNormalization",
    .attrs = {real_attr("epsilon", 1e-5), required_attr("num_groups", AttrKind::integer),
              integer_attr("stash_type", 1)},
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer_group_norm,
    .eval = eval_group_norm,
    .onnx = {{"GroupNormalization", 21}, {"GroupNormalization", 18, 20, import_grouped_scale}},
    .traits = {.few_bits = FewBits::follows, .layer = "Normalization", .entries_apart = first_apart}};
const OpDef ops::layer_normalization{
    .name = "LayerNormalization",
    .attrs = {integer_attr("axis", -1), real_attr("epsilon", 1e-5), integer_attr("stash_type", 1)},
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = infer_layer_norm,
    .eval = eval_layer_norm,
    .onnx = {{"LayerNormalization", 1}},
    .traits = {.few_bits = FewBits::follows,
               .weights = WeightRoles::scale_and_shift,
               .layer = "Normalization",
               .entries_apart = first_apart_off_axis}};
const OpDef ops::rms_normalization{
    .name = "RMSNormalization",
    .attrs = {integer_attr("axis", -1), real_attr("epsilon", 1e-5), integer_attr("stash_type", 1)},
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_layer_norm,
    .eval = eval_rms_norm,
    .onnx = {{"RMSNormalization", 1}, {"SimplifiedLayerNormalization", 1}},
    .traits = {.few_bits = FewBits::follows, .layer = "Normalization", .entries_apart = first_apart_off_axis}};
const OpDef ops::lp_normalization{.name = "LpNormalization",
                                  .attrs = {integer_attr("axis", -1), integer_attr("p", 2)},
                                  .infer = infer_axis,
                                  .eval = eval_lp_norm,
                                  .onnx = {{"LpNormalization"}}};
const OpDef ops::lrn{.name = "LRN",
                     .attrs = {real_attr("alpha", 0.0001), real_attr("beta", 0.75), real_attr("bias", 1),
                               required_attr("size", AttrKind::integer)},
                     .infer = infer_lrn,
                     .eval = eval_lrn,
                     .onnx = {{"LRN"}}};

const OpDef ops::batch_normalization_training{.name = "BatchNormalizationTraining",
                                              .attrs = {real_attr("epsilon", 1e-5), real_attr("momentum", 0.9)},
                                              .min_inputs = 5,
                                              .max_inputs = 5,
                                              .outputs = 3,
                                              .infer = infer_batch_norm_training,
                                              .eval = eval_batch_norm_training};

}  // namespace hone
