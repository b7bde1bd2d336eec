// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/conv/filters.h"

#include <cmath>

#include "ops/ops.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone::cuda {
namespace {

Tensor linear_rows(const std::vector<float>& source, const Dims& dims, bool transposed, DType dtype) {
  if (transposed) return write_floats(dtype, {dims[0], 1, dims[1]}, source);
  std::vector<float> rows(source.size());
  for (int64_t k = 0; k < dims[0]; ++k)
    for (int64_t n = 0; n < dims[1]; ++n)
      rows[static_cast<size_t>(n * dims[0] + k)] = source[static_cast<size_t>(k * dims[1] + n)];
  return write_floats(dtype, {dims[1], 1, dims[0]}, rows);
}

std::string real_text(float value) {
  if (std::isinf(value)) return value > 0 ? "INFINITY_F" : "(-INFINITY_F)";
  return fmt::format("{:.9e}f", value);
}

}  // namespace

EpilogueReads epilogue_reads(const EpilogueCode& code, const LoadContext& context, int64_t filters) {
  EpilogueReads reads;
  if (code.bias) {
    const Place bias{PlaceKind::constant, 1};
    HONE_CHECK(elements(context.dims_of(bias)) == filters, "a convolution in the plan adds {} to {} filters",
               join_dims(context.dims_of(bias)), filters);
    reads.bias = bias.pointer();
  }
  if (code.residual >= 0) {
    const Place residual{PlaceKind::input, code.residual};
    const Dims& dims = context.dims_of(residual);
    const ConcreteType& given = context.shapes.inputs[static_cast<size_t>(code.residual)];
    HONE_CHECK(given.dtype == context.shapes.outputs.at(0).dtype && dims == context.shapes.outputs[0].dims,
               "a convolution in the plan adds a tensor of {}", join_dims(dims));
    reads.residual = residual.pointer();
  }
  return reads;
}

Tensor filter_rows(const RegionMatch& match, const Node& node) {
  const Tensor& weights = *node.input(1)->constant;
  const std::vector<float> source = scaled_weights(match, weights);
  const Dims& dims = weights.dims();
  if (node.is(ops::linear)) return linear_rows(source, dims, node.attrs.integer("trans_w") != 0, weights.dtype());
  const bool transposed = node.is(ops::conv_transpose);
  const int64_t group = node.attrs.integer("group"), taps = elements(spatial_of(dims));
  const int64_t channels = transposed ? dims[0] / group : dims[1], filters = transposed ? dims[1] * group : dims[0],
                group_filters = filters / group;
  std::vector<float> packed(source.size());
  for (int64_t f = 0; f < filters; ++f)
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t from = transposed
                                 ? ((f / group_filters * channels + c) * group_filters + f % group_filters) * taps + t
                                 : (f * channels + c) * taps + t;
        packed[static_cast<size_t>((f * taps + t) * channels + c)] = source[static_cast<size_t>(from)];
      }
  return write_floats(weights.dtype(), {filters, taps, channels}, packed);
}

std::string activation_text(const Activation& activation) {
  return fmt::format("#define ACTIVATION {}\n#define ALPHA {}\n#define BETA {}\n", static_cast<int>(activation.kind),
                     real_text(activation.alpha), real_text(activation.beta));
}

std::string epilogue_text(const RegionMatch& match, bool bias) {
  std::string text = fmt::format("#define HAS_BIAS {}\n#define HAS_RESIDUAL {}\n#define RESIDUAL_LAST {}\n", bias,
                                 match.residual >= 0, match.residual_after_activation);
  return text + activation_text(match.activation);
}

}  // namespace hone::cuda
