// SPDX-License-Identifier: Apache-2.0
//
// Softmax, LogSoftmax, Hardmax along one axis. Before opset 13 they worked on the input flattened to two dimensions.
#include <cmath>
#include <limits>

#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

void infer_along_axis(InferContext& context) {
  normalize_axis(context.attrs().integer("axis"), context.rank(0));
  infer_same(context);
}

/// Calls `apply(row)` with the elements along the axis, one row after the other.
template <typename Apply>
void eval_along_axis(EvalContext& context, const Apply& apply) {
  const Tensor& x = context.input(0);
  const AxisView view(x.dims(), normalize_axis(context.attrs().integer("axis"), x.dims().size()));
  std::vector<double> y = read_doubles(x), row(static_cast<size_t>(view.length));
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.inner; ++i) {
      const auto at = [&](size_t k) -> double& {
        return y[static_cast<size_t>((o * view.length + static_cast<int64_t>(k)) * view.inner + i)];
      };
      for (size_t k = 0; k < row.size(); ++k) row[k] = at(k);
      apply(std::span(row));
      for (size_t k = 0; k < row.size(); ++k) at(k) = row[k];
    }
  }
  context.set(0, write_doubles(x.dtype(), x.dims(), y));
}

double largest(std::span<const double> row) {
  double result = -std::numeric_limits<double>::infinity();
  for (const double value : row) result = value > result || std::isnan(value) ? value : result;
  return result;
}

void eval_softmax(EvalContext& context) {
  eval_along_axis(context, [](std::span<double> row) {
    const double top = largest(row);
    double sum = 0;
    for (double& value : row) sum += value = std::exp(value - top);
    for (double& value : row) value /= sum;
  });
}

void eval_log_softmax(EvalContext& context) {
  eval_along_axis(context, [](std::span<double> row) {
    const double top = largest(row);
    double sum = 0;
    for (const double value : row) sum += std::exp(value - top);
    for (double& value : row) value = value - top - std::log(sum);
  });
}

void eval_hardmax(EvalContext& context) {
  eval_along_axis(context, [](std::span<double> row) {
    size_t best = 0;
    for (size_t k = 1; k < row.size(); ++k)
      if (row[k] > row[best]) best = k;
    for (size_t k = 0; k < row.size(); ++k) row[k] = k == best ? 1 : 0;
  });
}

template <const OpDef& op>
void import_flattened(ImportContext& context) {
  Value* x = context.input(0);
  const size_t rank = x->type.shape.rank();
  const int64_t axis = context.attrs().integer_or("axis", 1);
  const Attrs last{{"axis", int64_t{-1}}};
  if (rank > 0 && normalize_axis(axis, rank) == rank - 1)
    return context.set_output(0, context.add(op.name, {x}, last)->output());
  Value* flat = context.add("Flatten", {x}, {{"axis", axis}})->output();
  Value* shape = context.add("Shape", {x})->output();
  Value* y = context.add(op.name, {flat}, last)->output();
  context.set_output(0, context.add("Reshape", {y, shape})->output());
}

template <const OpDef& op>
OpDef along_axis(std::string_view name, void (*eval)(EvalContext&), const Traits& traits) {
  return {.name = name,
          .attrs = {integer_attr("axis", -1)},
          .infer = infer_along_axis,
          .eval = eval,
          .onnx = {{name, 13}, {name, 1, 12, import_flattened<op>}},
          .traits = traits};
}

}  // namespace

const OpDef ops::softmax = along_axis<ops::softmax>(
    "Softmax", eval_softmax, {.few_bits = FewBits::follows, .layer = "SoftMax", .entries_apart = first_apart_off_axis});
const OpDef ops::log_softmax = along_axis<ops::log_softmax>(
    "LogSoftmax", eval_log_softmax, {.few_bits = FewBits::follows, .entries_apart = first_apart_off_axis});
const OpDef ops::hardmax = along_axis<ops::hardmax>("Hardmax", eval_hardmax, {});

}  // namespace hone
