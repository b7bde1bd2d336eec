// SPDX-License-Identifier: Apache-2.0
//
// ConvTranspose: the convolution that would map the result to the input, run backwards. The product of weights and input
// gives what every input element sends through every tap; the window table of that convolution says where it lands.
#include <algorithm>

#include "ops/gemm_loops.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone {
namespace {

Dims output_padding(const Attrs& attrs, size_t rank) {
  if (!attrs.has("output_padding") || attrs.integers("output_padding").empty()) return Dims(rank, 0);
  HONE_CHECK(attrs.integers("output_padding").size() == rank, "output_padding has {} numbers where {} are needed",
             attrs.integers("output_padding").size(), rank);
  return attrs.integers("output_padding");
}

Dim result_size(const Dim& input, const WindowAttrs& window, const Dims& extra, size_t axis) {
  const int64_t extent = (window.kernel[axis] - 1) * window.dilations[axis] + 1;
  return Dim(window.strides[axis]) * (input - Dim(1)) +
         Dim(extra[axis] + extent - window.pads[axis] - window.pads[axis + window.kernel.size()]);
}

void infer_conv_transpose(InferContext& context) {
  const Shape &x = context.shape(0), &w = context.shape(1);
  HONE_CHECK(x.rank() >= 3, "ConvTranspose's input has rank {} where at least 3 is needed", x.rank());
  check_rank(context, 1, x.rank(), "ConvTranspose's weight");
  check_equal(x[1], w[0], "channels of ConvTranspose's input and weight");
  const size_t rank = x.rank() - 2;
  const WindowAttrs window(context.attrs(), rank, kernel_of_weight(w));
  HONE_CHECK(window.kernel == kernel_of_weight(w), "kernel_shape {} does not match the weight's {}",
             join_dims(window.kernel), join_dims(kernel_of_weight(w)));
  const int64_t group = context.attrs().integer("group");
  HONE_CHECK(group >= 1 && (!w[0].is_constant() || w[0].value() % group == 0),
             "{} channels do not divide into {} groups", w[0].text(), group);
  Shape result{x[0], w[1] * Dim(group)};
  const Dims extra = output_padding(context.attrs(), rank);
  for (size_t i = 0; i < rank; ++i) result.push_back(result_size(x[i + 2], window, extra, i));
  context.set(0, context.dtype(0), std::move(result));
}

/// Adds columns[(filter, tap), input element] to the result elements that the table names.
void scatter_columns(const WindowTable& table, const float* columns, int64_t filters, float* y) {
  for (int64_t f = 0; f < filters; ++f, y += table.inputs) {
    for (int64_t tap = 0; tap < table.taps; ++tap, columns += table.results) {
      const int32_t* offsets = table.offsets.data() + tap * table.results;
      for (int64_t i = 0; i < table.results; ++i)
        if (offsets[i] >= 0) y[offsets[i]] += columns[i];
    }
  }
}

void eval_conv_transpose(EvalContext& context) {
  const Tensor &x = context.input(0), &w = context.input(1);
  const Dims input = spatial_of(x.dims());
  const WindowAttrs window(context.attrs(), input.size(), spatial_of(w.dims()));
  const Dims extra = output_padding(context.attrs(), input.size());
  const int64_t group = context.attrs().integer("group"), batch = x.dims()[0], channels = x.dims()[1] / group,
                filters = w.dims()[1];
  HONE_CHECK(x.dims()[1] == w.dims()[0], "ConvTranspose's input has {} channels, its weight takes {}", x.dims()[1],
             w.dims()[0]);
  Dims dims{batch, filters * group}, result;
  for (size_t i = 0; i < input.size(); ++i) result.push_back(result_size(Dim(input[i]), window, extra, i).value());
  dims.insert(dims.end(), result.begin(), result.end());
  const WindowTable table(window, result, input);

  std::vector<float> y(static_cast<size_t>(elements(dims)), 0.0F);
  if (context.has(2)) {
    const Floats bias(context.input(2));
    for (size_t i = 0; i < y.size(); ++i) y[i] = bias[static_cast<int64_t>(i) / table.inputs % (filters * group)];
  }
  const Floats source(x), weight(w);
  const int64_t rows = filters * table.taps;
  std::vector<float> columns(static_cast<size_t>(rows * table.results));
  for (int64_t image = 0; image < batch * group; ++image) {
    std::fill(columns.begin(), columns.end(), 0.0F);
    add_matmul_parallel(rows, table.results, channels, {weight.data() + image % group * channels * rows, 1, rows},
                        {source.data() + image * channels * table.results, table.results, 1}, columns.data(),
                        table.results);
    scatter_columns(table, columns.data(), filters, y.data() + image * filters * table.inputs);
  }
  context.set(0, write_floats(x.dtype(), std::move(dims), y));
}

/// output_shape and auto_pad become explicit pads.
void import_conv_transpose(ImportContext& context) {
  HONE_CHECK(context.inputs() >= 2, "ConvTranspose needs an input and a weight");
  Attrs attrs = context.attrs();
  const Shape& x = context.input(0)->type.shape;
  HONE_CHECK(x.rank() >= 3, "ConvTranspose's input has rank {} where at least 3 is needed", x.rank());
  const size_t rank = x.rank() - 2;
  const WindowAttrs window(attrs, rank, kernel_of_weight(context.input(1)->type.shape));
  const Dims extra = output_padding(attrs, rank);
  Dims pads = window.auto_pad == "VALID" ? Dims(2 * rank, 0) : window.pads;
  Dims wanted = attrs.has("output_shape") ? attrs.integers("output_shape") : Dims{};
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  HONE_CHECK(wanted.empty() || wanted.size() == rank, "output_shape has {} numbers where {} are needed", wanted.size(),
             rank);
  if (!wanted.empty() || window.auto_pad.starts_with("SAME")) {
    for (size_t i = 0; i < rank; ++i) {
      const Dim& size = x[i + 2];
      HONE_CHECK(size.is_constant() || wanted.empty(),
                 "ConvTranspose with output_shape needs sizes that are numbers, not {}", size.text());
      const int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
      // stride * (size - 1) + extra + extent - total = wanted, and SAME wants stride * size.
      const int64_t missing = wanted.empty() ? window.strides[i] : wanted[i] - window.strides[i] * (size.value() - 1);
      const int64_t total = extra[i] + extent - missing;
      const int64_t half = total >> 1;  // rounded down, also when the padding is negative
      pads[i] = window.auto_pad == "SAME_UPPER" ? half : total - half;
      pads[i + rank] = total - pads[i];
    }
  }
  attrs.erase("output_shape");
  attrs.set("kernel_shape", window.kernel);
  attrs.set("strides", window.strides);
  attrs.set("dilations", window.dilations);
  attrs.set("pads", std::move(pads));
  attrs.set("output_padding", extra);
  attrs.set("auto_pad", std::string("NOTSET"));
  std::vector<Value*> inputs{context.input(0), context.input(1)};
  if (context.inputs() > 2 && context.input(2) != nullptr) inputs.push_back(context.input(2));
  context.set_output(0, context.add("ConvTranspose", std::move(inputs), std::move(attrs))->output());
}

/// Each element meets one filter of a group.
int64_t flops_of_conv_transpose(const Node& node, const SymbolValues& sizes) {
  const Dims weights = node.input(1)->type.shape.evaluate(sizes);
  if (weights.empty() || weights[0] == 0) return 0;
  return 2 * (elements(weights) / weights[0]) * elements(node.input(0)->type.shape.evaluate(sizes));
}

/// Weights are [in, out / group, kernel...]; the group follows from the input channel.
Channels channels_of_conv_transpose(const Node& node) {
  return {.of_result = 1, .of_weights = 1, .groups = node.attrs.integer("group")};
}

}  // namespace

const OpDef ops::conv_transpose{.name = "ConvTranspose",
                                .attrs = {text_attr("auto_pad", "NOTSET"), integers_attr("kernel_shape"),
                                          integers_attr("strides"), integers_attr("pads"), integers_attr("dilations"),
                                          integers_attr("output_padding"), integer_attr("group", 1)},
                                .min_inputs = 2,
                                .max_inputs = 3,
                                .infer = infer_conv_transpose,
                                .eval = eval_conv_transpose,
                                .onnx = {{"ConvTranspose", 1, kEveryLater, import_conv_transpose}},
                                .traits = {.few_bits = FewBits::gains,
                                           .weights = WeightRoles::kernel_and_bias,
                                           .layer = "Deconvolution",
                                           .entries_apart = first_apart,
                                           .flops = flops_of_conv_transpose,
                                           .channels = channels_of_conv_transpose}};

}  // namespace hone
