// SPDX-License-Identifier: Apache-2.0
//
// ArgMax, ArgMin, CumSum and CumProd: walks along one axis.
#include "base/numbers.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

void infer_arg(InferContext& context) {
  const size_t axis = normalize_axis(context.attrs().integer("axis"), context.rank(0));
  const bool keep = context.attrs().integer("keepdims") != 0;
  Shape result;
  for (size_t i = 0; i < context.rank(0); ++i) {
    if (i != axis) result.push_back(context.shape(0)[i]);
    else if (keep) result.push_back(Dim(1));
  }
  context.set(0, DType::i64, std::move(result));
}

template <typename Better>
void eval_arg(EvalContext& context, const Better& better) {
  const Tensor& x = context.input(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), x.dims().size());
  const AxisView view(x.dims(), axis);
  HONE_CHECK(view.length > 0, "{} along an axis of size 0", context.node().op_name());
  const bool last = context.attrs().integer("select_last_index") != 0;
  const std::vector<double> data = read_doubles(x);
  std::vector<int64_t> result;
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.inner; ++i) {
      const auto at = [&](int64_t k) { return data[static_cast<size_t>((o * view.length + k) * view.inner + i)]; };
      int64_t best = 0;
      for (int64_t k = 1; k < view.length; ++k)
        if (better(at(k), at(best)) || (last && at(k) == at(best))) best = k;
      result.push_back(best);
    }
  }
  Dims dims = x.dims();
  if (context.attrs().integer("keepdims") != 0) dims[axis] = 1;
  else dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  context.set(0, write_integers(DType::i64, std::move(dims), result));
}
void eval_arg_max(EvalContext& context) {
  eval_arg(context, [](double a, double b) { return a > b; });
}
void eval_arg_min(EvalContext& context) {
  eval_arg(context, [](double a, double b) { return a < b; });
}

OpDef arg_op(std::string_view name, void (*eval)(EvalContext&)) {
  return {.name = name,
          .attrs = {integer_attr("axis", 0), integer_attr("keepdims", 1), integer_attr("select_last_index", 0)},
          .infer = infer_arg,
          .eval = eval,
          .onnx = {{name}}};
}

template <typename T>
std::vector<T> running(std::vector<T> data, const AxisView& view, bool exclusive, bool reverse, bool product) {
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.inner; ++i) {
      T total = product ? 1 : 0;
      for (int64_t step = 0; step < view.length; ++step) {
        const int64_t k = reverse ? view.length - 1 - step : step;
        T& value = data[static_cast<size_t>((o * view.length + k) * view.inner + i)];
        const T before = total;
        total = product ? wrapping_multiply(total, value) : wrapping_add(total, value);
        value = exclusive ? before : total;
      }
    }
  }
  return data;
}

template <bool product>
void eval_running(EvalContext& context) {
  const Tensor& x = context.input(0);
  const AxisView view(x.dims(), normalize_axis(context.input(1).integer(0), x.dims().size()));
  const bool exclusive = context.attrs().integer("exclusive") != 0, reverse = context.attrs().integer("reverse") != 0;
  if (is_float(x.dtype()))
    context.set(0, write_doubles(x.dtype(), x.dims(), running(read_doubles(x), view, exclusive, reverse, product)));
  else context.set(0, write_integers(x.dtype(), x.dims(), running(x.integers(), view, exclusive, reverse, product)));
}

}  // namespace

const OpDef ops::arg_max = arg_op("ArgMax", eval_arg_max);
const OpDef ops::arg_min = arg_op("ArgMin", eval_arg_min);
const OpDef ops::cum_sum{.name = "CumSum",
                         .attrs = {integer_attr("exclusive", 0), integer_attr("reverse", 0)},
                         .min_inputs = 2,
                         .max_inputs = 2,
                         .infer = infer_same,
                         .eval = eval_running<false>,
                         .onnx = {{"CumSum", 11}}};
const OpDef ops::cum_prod{.name = "CumProd",
                          .attrs = {integer_attr("exclusive", 0), integer_attr("reverse", 0)},
                          .min_inputs = 2,
                          .max_inputs = 2,
                          .infer = infer_same,
                          .eval = eval_running<true>,
                          .onnx = {{"CumProd", 26}}};

}  // namespace hone
