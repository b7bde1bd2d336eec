// SPDX-License-Identifier: Apache-2.0
//
// Resize in every coordinate mode: each axis is resampled on its own with a few weighted neighbours. Operands: x, roi,
// scales, sizes. Older forms (Upsample, Resize 10) are brought to this one.
#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "ops/ops.h"
#include "ops/resample.h"
#include "ops/support.h"
#include "tensor/free_memory.h"

namespace hone::ops {
namespace {

/// The sizes under a policy: the wanted ones, or those of the one factor that keeps the ratio of the axes.
Dims fitted_dims(const Attrs& attrs, Dims dims, const std::vector<int64_t>& axes, const Dims& wanted) {
  const std::string& policy = attrs.text("keep_aspect_ratio_policy");
  HONE_CHECK(policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
             "keep_aspect_ratio_policy '{}' is not known", policy);
  double factor = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const double ratio =
        static_cast<double>(wanted[i]) / static_cast<double>(dims[normalize_axis(axes[i], dims.size())]);
    factor = i == 0 ? ratio : policy == "not_larger" ? std::min(factor, ratio) : std::max(factor, ratio);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& size = dims[normalize_axis(axes[i], dims.size())];
    size = policy == "stretch" ? wanted[i] : saturated<int64_t>(std::floor(factor * static_cast<double>(size) + 0.5));
  }
  return dims;
}

Dims resized_dims(const EvalContext& context, const std::vector<int64_t>& axes) {
  Dims dims = context.input(0).dims();
  if (context.has(3)) return fitted_dims(context.attrs(), std::move(dims), axes, context.input(3).integers());
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& size = dims[normalize_axis(axes[i], dims.size())];
    size = saturated<int64_t>(std::floor(static_cast<double>(size) * context.input(2).real(static_cast<int64_t>(i))));
  }
  return dims;
}

void infer_resize(InferContext& context) {
  const Shape& x = context.shape(0);
  const ResampleRule rule(context.attrs());  // refuses words that it does not know
  const std::vector<int64_t> axes = resampled_axes(context.attrs(), x.rank());
  Shape result = x;
  const bool by_size = context.has(3);
  HONE_CHECK(by_size || context.has(2), "Resize needs scales or sizes");
  const std::optional<SymbolicData> sizes = by_size ? context.symbolic(3) : std::nullopt;
  const bool stretch = context.attrs().text("keep_aspect_ratio_policy") == "stretch";
  const bool all_numbers = x.is_static() && sizes && std::all_of(sizes->begin(), sizes->end(), [](const Dim& size) {
                             return size.is_constant();
                           });
  const bool open = by_size ? !sizes || (!stretch && !all_numbers) : context.constant(2) == nullptr;
  if (open) {
    for (const int64_t axis : axes)
      result[normalize_axis(axis, x.rank())] = context.data_dependent(0, normalize_axis(axis, x.rank()));
  } else if (by_size) {
    HONE_CHECK(sizes->size() == axes.size(), "Resize has {} sizes for {} axes", sizes->size(), axes.size());
    if (context.attrs().text("keep_aspect_ratio_policy") == "stretch") {
      for (size_t i = 0; i < axes.size(); ++i) result[normalize_axis(axes[i], x.rank())] = (*sizes)[i];
    } else {
      Dims wanted;
      for (const Dim& size : *sizes) wanted.push_back(size.value());
      result = Shape(fitted_dims(context.attrs(), x.values(), axes, wanted));
    }
  } else {
    const Tensor* scales = context.constant(2);
    HONE_CHECK(scales->size() == static_cast<int64_t>(axes.size()), "Resize has {} scales for {} axes", scales->size(),
               axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      const size_t axis = normalize_axis(axes[i], x.rank());
      const double scale = scales->real(static_cast<int64_t>(i));
      HONE_CHECK(scale > 0, "a scale of Resize is {}", scale);
      if (x[axis].is_constant())
        result[axis] = Dim(saturated<int64_t>(std::floor(static_cast<double>(x[axis].value()) * scale)));
      else if (scale == std::floor(scale)) result[axis] = x[axis] * Dim(saturated<int64_t>(scale));
      else if (1 / scale == std::floor(1 / scale))
        result[axis] = floor_divide(x[axis], Dim(saturated<int64_t>(1 / scale)));
      else if (scale != 1) result[axis] = context.data_dependent(0, axis);
    }
  }
  context.set(0, context.dtype(0), result);
}

void eval_resize(EvalContext& context) {
  const Tensor& x = context.input(0);
  const Attrs& attrs = context.attrs();
  const size_t rank = x.dims().size();
  const ResampleRule rule(attrs);
  const std::vector<int64_t> axes = resampled_axes(attrs, rank);
  Dims dims = resized_dims(context, axes);
  Dims now = x.dims();
  std::vector<double> data = read_doubles(x);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = normalize_axis(axes[i], rank);
    AxisResampling plan{.in = x.dims()[axis], .out = dims[axis]};
    plan.scale = context.has(3) ? static_cast<double>(plan.out) / static_cast<double>(plan.in)
                                : context.input(2).real(static_cast<int64_t>(i));
    if (context.has(1) && context.input(1).size() == 2 * static_cast<int64_t>(axes.size())) {
      plan.roi_start = context.input(1).real(static_cast<int64_t>(i));
      plan.roi_end = context.input(1).real(static_cast<int64_t>(i + axes.size()));
    }
    if (is_identity(plan, rule)) continue;
    const AxisView s(now, axis);
    now[axis] = plan.out;  // more than the result has where a later axis shrinks
    require_memory(DType::f64, now);
    std::vector<double> next(static_cast<size_t>(elements(now)));
    for (int64_t o = 0; o < plan.out; ++o) {
      const std::vector<ResampleTap> taps = taps_of(plan, rule, o);
      for (int64_t a = 0; a < s.outer; ++a)
        for (int64_t b = 0; b < s.inner; ++b) {
          double sum = taps.empty() ? attrs.real("extrapolation_value") : 0;
          for (const ResampleTap& tap : taps)
            sum += tap.weight * data[static_cast<size_t>((a * plan.in + tap.index) * s.inner + b)];
          next[static_cast<size_t>((a * plan.out + o) * s.inner + b)] = sum;
        }
    }
    data = std::move(next);
  }
  context.set(0, write_doubles(x.dtype(), std::move(dims), data));
}

/// Resize 10 and Upsample 9: scales as second operand, asymmetric coordinates, nearest rounded down.
void import_scales(ImportContext& context) {
  Attrs attrs{{"coordinate_transformation_mode", std::string("asymmetric")}, {"nearest_mode", std::string("floor")}};
  if (const AttrValue* mode = context.attrs().find("mode"))
    attrs.set("mode", std::get<std::string>(*mode) == "bilinear" ? AttrValue(std::string("linear")) : *mode);
  Value* scales = nullptr;
  if (context.inputs() > 1) scales = context.input(1);
  else {
    const std::vector<double>& list = context.attrs().reals("scales");
    const std::vector<float> values(list.begin(), list.end());
    scales = context.constant(Tensor::of<float>({static_cast<int64_t>(values.size())}, std::span<const float>(values)));
  }
  context.set_output(0, context.add("Resize", {context.input(0), nullptr, scales}, std::move(attrs))->output());
}

/// Empty operands (opset 11 and 12 write them) are not given.
void import_resize(ImportContext& context) {
  std::vector<Value*> operands;
  for (size_t i = 0; i < 4; ++i) {
    Value* value = i < context.inputs() ? context.input(i) : nullptr;
    const bool empty =
        i > 0 && value != nullptr && value->type.shape.is_static() && elements(value->type.shape.values()) == 0;
    operands.push_back(empty ? nullptr : value);
  }
  context.set_output(0, context.add("Resize", std::move(operands), context.attrs())->output());
}

}  // namespace

const OpDef resize{.name = "Resize",
                   .attrs = {{"antialias", AttrKind::integer, int64_t{0}},
                             integers_attr("axes"),
                             {"coordinate_transformation_mode", AttrKind::text, std::string("half_pixel")},
                             {"cubic_coeff_a", AttrKind::real, -0.75},
                             {"exclude_outside", AttrKind::integer, int64_t{0}},
                             {"extrapolation_value", AttrKind::real, 0.0},
                             {"keep_aspect_ratio_policy", AttrKind::text, std::string("stretch")},
                             {"mode", AttrKind::text, std::string("nearest")},
                             {"nearest_mode", AttrKind::text, std::string("round_prefer_floor")}},
                   .min_inputs = 1,
                   .max_inputs = 4,
                   .infer = infer_resize,
                   .eval = eval_resize,
                   .onnx = {{"Resize", 11, kEveryLater, import_resize},
                            {"Resize", 10, 10, import_scales},
                            {"Upsample", 7, 9, import_scales}},
                   .traits = {.few_bits = FewBits::passes, .keeps_type_from = 1}};

}  // namespace hone::ops
