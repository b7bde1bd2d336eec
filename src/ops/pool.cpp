// SPDX-License-Identifier: Apache-2.0
//
// Pools over windows and over everything: one walk over the window table, one small reduction per kind.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/node_error.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone {
namespace {

WindowAttrs window_of(const Attrs& attrs, size_t rank) {
  HONE_CHECK(rank >= 3, "a pool's input has rank {} where at least 3 is needed", rank);
  HONE_CHECK_AS(AttributeError, attrs.has("kernel_shape"), "a pool needs the attribute 'kernel_shape'");
  return WindowAttrs(attrs, rank - 2, {});
}

void infer_pool(InferContext& context) {
  const Shape& x = context.shape(0);
  const WindowAttrs window = window_of(context.attrs(), x.rank());
  Shape result{x[0], x[1]};
  for (size_t i = 2; i < x.rank(); ++i) result.push_back(window.result_size(x[i], i - 2));
  context.set(0, context.dtype(0), result);
  if (context.outputs() > 1) context.set(1, DType::i64, result);
}

/// Calls `reduce(plane number, plane, result number, offsets of the taps)` for every element of the result.
template <typename Reduce>
Dims walk_windows(const EvalContext& context, const Reduce& reduce) {
  const Dims& dims = context.input(0).dims();
  const WindowAttrs window = window_of(context.attrs(), dims.size());
  const Dims input = spatial_of(dims);
  Dims result{dims[0], dims[1]}, spatial;
  for (size_t i = 0; i < input.size(); ++i) spatial.push_back(window.result_size(Dim(input[i]), i).value());
  result.insert(result.end(), spatial.begin(), spatial.end());
  const WindowTable table(window, input, spatial);
  reduce(table, dims[0] * dims[1]);
  return result;
}

/// Column-major number of a flat spatial element (storage_order 1).
int64_t column_major(std::span<const int64_t> spatial, int64_t flat) {
  int64_t result = 0, stride = elements(spatial);
  for (size_t i = spatial.size(); i-- > 0;) {
    stride /= spatial[i];
    result += flat % spatial[i] * stride;
    flat /= spatial[i];
  }
  return result;
}

void eval_max_pool(EvalContext& context) {
  const Tensor& x = context.input(0);
  const std::vector<double> data = read_doubles(x);
  std::vector<double> values;
  std::vector<int64_t> indices;
  const Dims dims = walk_windows(context, [&](const WindowTable& table, int64_t planes) {
    for (int64_t plane = 0; plane < planes; ++plane) {
      for (int64_t r = 0; r < table.results; ++r) {
        double best = -std::numeric_limits<double>::infinity();
        int64_t at = 0;
        bool found = false;
        for (int64_t tap = 0; tap < table.taps; ++tap) {
          const int32_t offset = table.offsets[static_cast<size_t>(tap * table.results + r)];
          if (offset < 0) continue;
          const double value = data[static_cast<size_t>(plane * table.inputs + offset)];
          if (!found || value > best || (std::isnan(value) && !std::isnan(best))) best = value, at = offset;
          found = true;
        }
        values.push_back(best);
        if (context.outputs() > 1)
          indices.push_back(plane * table.inputs + (context.attrs().integer("storage_order") != 0
                                                        ? column_major(spatial_of(x.dims()), at)
                                                        : at));
      }
    }
  });
  context.set(0, write_doubles(x.dtype(), dims, values));
  if (context.outputs() > 1) context.set(1, write_integers(DType::i64, dims, indices));
}

void eval_average_pool(EvalContext& context) {
  const Tensor& x = context.input(0);
  const Floats data(x);
  const bool count_padding = context.attrs().integer("count_include_pad") != 0;
  std::vector<double> values;
  const Dims dims = walk_windows(context, [&](const WindowTable& table, int64_t planes) {
    for (int64_t plane = 0; plane < planes; ++plane) {
      for (int64_t r = 0; r < table.results; ++r) {
        double sum = 0;
        int64_t count = 0;
        for (int64_t tap = 0; tap < table.taps; ++tap) {
          const int32_t offset = table.offsets[static_cast<size_t>(tap * table.results + r)];
          if (offset < 0) continue;
          sum += static_cast<double>(data[plane * table.inputs + offset]);
          ++count;
        }
        if (count_padding) count = table.padded_taps[static_cast<size_t>(r)];
        values.push_back(sum / static_cast<double>(count));
      }
    }
  });
  context.set(0, write_doubles(x.dtype(), dims, values));
}

void eval_lp_pool(EvalContext& context) {
  const Tensor& x = context.input(0);
  const Floats data(x);
  const auto p = static_cast<double>(context.attrs().integer("p"));
  std::vector<double> values;
  const Dims dims = walk_windows(context, [&](const WindowTable& table, int64_t planes) {
    for (int64_t plane = 0; plane < planes; ++plane) {
      for (int64_t r = 0; r < table.results; ++r) {
        double sum = 0;
        for (int64_t tap = 0; tap < table.taps; ++tap) {
          const int32_t offset = table.offsets[static_cast<size_t>(tap * table.results + r)];
          if (offset >= 0) sum += std::pow(std::fabs(static_cast<double>(data[plane * table.inputs + offset])), p);
        }
        values.push_back(std::pow(sum, 1 / p));
      }
    }
  });
  context.set(0, write_doubles(x.dtype(), dims, values));
}

// ---- over everything ----

void infer_global(InferContext& context) {
  HONE_CHECK(context.rank(0) >= 2, "a global pool's input has rank {} where at least 2 is needed", context.rank(0));
  Shape result{context.shape(0)[0], context.shape(0)[1]};
  while (result.rank() < context.rank(0)) result.push_back(Dim(1));
  context.set(0, context.dtype(0), std::move(result));
}

template <typename Reduce>
void eval_global(EvalContext& context, const Reduce& reduce) {
  const Tensor& x = context.input(0);
  Dims dims(x.dims().size(), 1);
  dims[0] = x.dims()[0], dims[1] = x.dims()[1];
  const int64_t planes = dims[0] * dims[1];
  const std::vector<double> data = read_doubles(x);
  const size_t size = planes == 0 ? 0 : data.size() / static_cast<size_t>(planes);
  std::vector<double> values;
  for (size_t i = 0; i < static_cast<size_t>(planes); ++i)
    values.push_back(reduce(std::span(data).subspan(i * size, size)));
  context.set(0, write_doubles(x.dtype(), std::move(dims), values));
}

void eval_global_average(EvalContext& context) {
  eval_global(context, [](std::span<const double> plane) {
    double sum = 0;
    for (const double value : plane) sum += value;
    return sum / static_cast<double>(plane.size());
  });
}
void eval_global_max(EvalContext& context) {
  eval_global(context, [](std::span<const double> plane) {
    return plane.empty() ? 0.0 : *std::max_element(plane.begin(), plane.end());
  });
}
void eval_global_lp(EvalContext& context) {
  eval_global(context, [p = static_cast<double>(context.attrs().integer("p"))](std::span<const double> plane) {
    double sum = 0;
    for (const double value : plane) sum += std::pow(std::fabs(value), p);
    return std::pow(sum, 1 / p);
  });
}

template <const OpDef& op>
void import_pool(ImportContext& context) {
  Attrs attrs = context.attrs();
  HONE_CHECK_AS(AttributeError, attrs.has("kernel_shape"), "{} needs the attribute 'kernel_shape'", op.name);
  complete_window_attrs(context, attrs, context.input(0)->type.shape, attrs.integers("kernel_shape"));
  const Node* node = context.add(op.name, {context.input(0)}, std::move(attrs), context.outputs());
  for (size_t i = 0; i < context.outputs(); ++i) context.set_output(i, node->output(i));
}

std::vector<AttrSpec> window_attrs(std::vector<AttrSpec> more) {
  std::vector<AttrSpec> attrs{text_attr("auto_pad", "NOTSET"), integer_attr("ceil_mode", 0),
                              integers_attr("kernel_shape"),   integers_attr("strides"),
                              integers_attr("pads"),           integers_attr("dilations")};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

}  // namespace

const OpDef ops::max_pool{.name = "MaxPool",
                          .attrs = window_attrs({integer_attr("storage_order", 0)}),
                          .infer = infer_pool,
                          .eval = eval_max_pool,
                          .onnx = {{"MaxPool", 1, kEveryLater, import_pool<ops::max_pool>}},
                          .traits = {.few_bits = FewBits::passes, .layer = "Pooling", .entries_apart = first_apart}};
const OpDef ops::average_pool{
    .name = "AveragePool",
    .attrs = window_attrs({integer_attr("count_include_pad", 0)}),
    .infer = infer_pool,
    .eval = eval_average_pool,
    .onnx = {{"AveragePool", 1, kEveryLater, import_pool<ops::average_pool>}},
    .traits = {.few_bits = FewBits::passes, .layer = "Pooling", .entries_apart = first_apart}};
const OpDef ops::lp_pool{.name = "LpPool",
                         .attrs = window_attrs({integer_attr("p", 2)}),
                         .infer = infer_pool,
                         .eval = eval_lp_pool,
                         .onnx = {{"LpPool", 2, kEveryLater, import_pool<ops::lp_pool>}}};
const OpDef ops::global_average_pool{
    .name = "GlobalAveragePool",
    .infer = infer_global,
    .eval = eval_global_average,
    .onnx = {{"GlobalAveragePool"}},
    .traits = {.few_bits = FewBits::passes, .layer = "Pooling", .entries_apart = first_apart}};
const OpDef ops::global_max_pool{
    .name = "GlobalMaxPool",
    .infer = infer_global,
    .eval = eval_global_max,
    .onnx = {{"GlobalMaxPool"}},
    .traits = {.few_bits = FewBits::follows, .layer = "Pooling", .entries_apart = first_apart}};
const OpDef ops::global_lp_pool{.name = "GlobalLpPool",
                                .attrs = {integer_attr("p", 2)},
                                .infer = infer_global,
                                .eval = eval_global_lp,
                                .onnx = {{"GlobalLpPool", 2}}};

}  // namespace hone
