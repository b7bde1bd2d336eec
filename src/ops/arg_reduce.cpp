// SPDX-License-Identifier: Apache-2.0
//
// Positions of extremes and running sums along one axis.
#include "ops/ops.h"
#include "ops/support.h"

namespace hone::ops {
namespace {

void infer_arg(InferContext& context) {
  const Shape& x = context.shape(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), x.rank());
  Shape result;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (i != axis) result.push_back(x[i]);
    else if (context.attrs().integer("keepdims") != 0) result.push_back(Dim(1));
  }
  context.set(0, DType::i64, result);
}

template <bool Largest>
void eval_arg(EvalContext& context) {
  const Tensor& x = context.input(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), x.dims().size());
  const AxisSplit s = split_at(x.dims(), axis);
  const bool last = context.attrs().integer("select_last_index") != 0;
  std::vector<int64_t> out;
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      int64_t best = 0;
      for (int64_t k = 1; k < s.size; ++k) {
        const double a = x.real((o * s.size + k) * s.inner + i), b = x.real((o * s.size + best) * s.inner + i);
        if ((Largest ? a > b : a < b) || (last && a == b)) best = k;
      }
      out.push_back(best);
    }
  Dims dims = x.dims();
  if (context.attrs().integer("keepdims") != 0) dims[axis] = 1;
  else dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  context.set(0, Tensor::of<int64_t>(dims, std::span<const int64_t>(out)));
}

std::vector<AttrSpec> arg_attrs() {
  return {{"axis", AttrKind::integer, int64_t{0}}, {"keepdims", AttrKind::integer, int64_t{1}}, {"select_last_index", AttrKind::integer, int64_t{0}}};
}

void infer_cum_sum(InferContext& context) { context.set(0, context.dtype(0), context.shape(0)); }

void eval_cum_sum(EvalContext& context) {
  const Tensor& x = context.input(0);
  const AxisSplit s = split_at(x.dims(), normalize_axis(context.input(1).integer(0), x.dims().size()));
  const bool exclusive = context.attrs().integer("exclusive") != 0, reverse = context.attrs().integer("reverse") != 0;
  TensorBuilder builder(x.dtype(), x.dims());
  visit(x.dtype(), [&]<typename T>() {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      const std::span<const T> in = x.data<T>();
      const std::span<T> out = builder.data<T>();
      for (int64_t o = 0; o < s.outer; ++o)
        for (int64_t i = 0; i < s.inner; ++i) {
          T total = 0;
          for (int64_t n = 0; n < s.size; ++n) {
            const auto at = static_cast<size_t>((o * s.size + (reverse ? s.size - 1 - n : n)) * s.inner + i);
            const T value = in[at];
            if (exclusive) out[at] = total;
            total = static_cast<T>(total + value);
            if (!exclusive) out[at] = total;
          }
        }
    } else {
      throw Error(fmt::format("CumSum of {} is not defined", name_of(x.dtype())));
    }
  });
  context.set(0, builder.finish());
}

}  // namespace

const OpDef arg_max{.name = "ArgMax", .attrs = arg_attrs(), .infer = infer_arg, .eval = eval_arg<true>, .onnx = {{"ArgMax"}}};
const OpDef arg_min{.name = "ArgMin", .attrs = arg_attrs(), .infer = infer_arg, .eval = eval_arg<false>, .onnx = {{"ArgMin"}}};
const OpDef cum_sum{.name = "CumSum", .attrs = {{"exclusive", AttrKind::integer, int64_t{0}}, {"reverse", AttrKind::integer, int64_t{0}}}, .min_inputs = 2, .max_inputs = 2, .infer = infer_cum_sum, .eval = eval_cum_sum, .onnx = {{"CumSum", 11}}};

}  // namespace hone::ops
