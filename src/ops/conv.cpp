// SPDX-License-Identifier: Apache-2.0
//
// Conv in one to three spatial dimensions: gathers the windows of a run of result elements into columns and multiplies
// the filter matrix with them.
#include <algorithm>

#include "ops/gemm_loops.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone {
namespace {

void infer_conv(InferContext& context) {
  const Shape &x = context.shape(0), &w = context.shape(1);
  HONE_CHECK(x.rank() >= 3, "Conv's input has rank {} where at least 3 is needed", x.rank());
  check_rank(context, 1, x.rank(), "Conv's weight");
  const WindowAttrs window(context.attrs(), x.rank() - 2, kernel_of_weight(w));
  const int64_t group = context.attrs().integer("group");
  HONE_CHECK(group >= 1, "group {} is not positive", group);
  check_equal(x[1], w[1] * Dim(group), "channels of Conv's input and weight x group");
  HONE_CHECK(!w[0].is_constant() || w[0].value() % group == 0, "{} filters do not divide into {} groups", w[0].text(),
             group);
  if (context.has(2)) {
    check_rank(context, 2, 1, "Conv's bias");
    check_equal(context.shape(2)[0], w[0], "sizes of Conv's bias and filters");
  }
  Shape result{x[0], w[0]};
  for (size_t i = 2; i < x.rank(); ++i) result.push_back(window.result_size(x[i], i - 2));
  context.set(0, context.dtype(0), std::move(result));
}

struct ConvShape {
  int64_t batch, group, channels, filters;  // channels and filters of one group
  Dims result;
};

/// columns[c * taps + tap][i] = the input element that this tap of result element `first + i` reads.
void gather_columns(const WindowTable& table, const float* x, int64_t channels, int64_t first, int64_t count,
                    float* columns) {
  for (int64_t c = 0; c < channels; ++c, x += table.inputs) {
    for (int64_t tap = 0; tap < table.taps; ++tap, columns += count) {
      const int32_t* offsets = table.offsets.data() + tap * table.results + first;
      for (int64_t i = 0; i < count; ++i) columns[i] = offsets[i] < 0 ? 0.0F : x[offsets[i]];
    }
  }
}

void convolve(const ConvShape& shape, const WindowTable& table, const float* x, const float* w, float* y) {
  constexpr int64_t kRun = 512;
  const int64_t depth = shape.channels * table.taps, runs = (table.results + kRun - 1) / kRun;
#pragma omp parallel for schedule(dynamic)
  for (int64_t job = 0; job < shape.batch * shape.group * runs; ++job) {
    const int64_t image = job / runs, g = image % shape.group, first = job % runs * kRun,
                  count = std::min(kRun, table.results - first);
    std::vector<float> columns(static_cast<size_t>(depth * count));
    gather_columns(table, x + image * shape.channels * table.inputs, shape.channels, first, count, columns.data());
    add_matmul(shape.filters, count, depth, {w + g * shape.filters * depth, depth, 1}, {columns.data(), count, 1},
               y + image * shape.filters * table.results + first, table.results);
  }
}

void eval_conv(EvalContext& context) {
  const Tensor &x = context.input(0), &w = context.input(1);
  const WindowAttrs window(context.attrs(), x.dims().size() - 2, spatial_of(w.dims()));
  const int64_t group = context.attrs().integer("group");
  HONE_CHECK(x.dims()[1] == w.dims()[1] * group, "Conv's input has {} channels, its weight takes {}", x.dims()[1],
             w.dims()[1] * group);
  const Dims input = spatial_of(x.dims());
  Dims result;
  for (size_t i = 0; i < input.size(); ++i) result.push_back(window.result_size(Dim(input[i]), i).value());
  const WindowTable table(window, input, result);
  const ConvShape shape{x.dims()[0], group, w.dims()[1], w.dims()[0] / group, result};

  Dims dims{x.dims()[0], w.dims()[0]};
  dims.insert(dims.end(), result.begin(), result.end());
  std::vector<float> y(static_cast<size_t>(elements(dims)), 0.0F);
  if (context.has(2)) {
    const Floats bias(context.input(2));
    for (size_t i = 0; i < y.size(); ++i) y[i] = bias[static_cast<int64_t>(i) / table.results % w.dims()[0]];
  }
  convolve(shape, table, Floats(x).data(), Floats(w).data(), y.data());
  context.set(0, write_floats(x.dtype(), std::move(dims), y));
}

void import_conv(ImportContext& context) {
  HONE_CHECK(context.inputs() >= 2, "Conv needs an input and a weight");
  Attrs attrs = context.attrs();
  complete_window_attrs(context, attrs, context.input(0)->type.shape, kernel_of_weight(context.input(1)->type.shape));
  std::vector<Value*> inputs{context.input(0), context.input(1)};
  if (context.inputs() > 2 && context.input(2) != nullptr) inputs.push_back(context.input(2));
  context.set_output(0, context.add("Conv", std::move(inputs), std::move(attrs))->output());
}

Channels channels_of_conv(const Node&) { return {.of_result = 1, .of_weights = 0}; }

}  // namespace

const OpDef ops::conv{
    .name = "Conv",
    .attrs = {text_attr("auto_pad", "NOTSET"), integers_attr("kernel_shape"), integers_attr("strides"),
              integers_attr("pads"), integers_attr("dilations"), integer_attr("group", 1)},
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = infer_conv,
    .eval = eval_conv,
    .onnx = {{"Conv", 1, kEveryLater, import_conv}},
    .traits = {.few_bits = FewBits::gains,
               .weights = WeightRoles::kernel_and_bias,
               .layer = "Convolution",
               .entries_apart = first_apart,
               .flops = flops_of_filters,
               .channels = channels_of_conv}};

}  // namespace hone
