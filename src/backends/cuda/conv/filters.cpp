// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/conv/filters.h"

#include "backends/cuda/pointwise/formula.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/rounding.h"
#include "ops/support.h"

namespace hone::cuda {
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

Tensor filter_rows(const ConvRegion& region) {
  const Tensor& weights = *region.node().input(1)->constant;
  const Floats source = region.weights();
  const Dims& dims = weights.dims();
  const bool transposed = region.transposed;
  const int64_t groups = region.code.groups, filters = region.code.channels, taps = elements(region.window.kernel);
  const int64_t channels = transposed ? dims[0] / groups : dims[1], group_filters = filters / groups;
  std::vector<float> packed(source.size());
  for (int64_t f = 0; f < filters; ++f)
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t from = transposed
                                 ? ((f / group_filters * channels + c) * group_filters + f % group_filters) * taps + t
                                 : (f * channels + c) * taps + t;
        packed[static_cast<size_t>((f * taps + t) * channels + c)] = source[from];
      }
  return write_floats(weights.dtype(), {filters, taps, channels}, packed);
}

Tensor filter_rows(const LinearRegion& region) {
  const DType dtype = region.node().input(1)->constant->dtype();
  const int64_t n = region.code.n, k = region.code.k;
  const Floats source = region.weights();
  if (region.transposed) return write_floats(dtype, {n, 1, k}, source.span());
  std::vector<float> rows(source.size());
  for (int64_t row = 0; row < k; ++row)
    for (int64_t column = 0; column < n; ++column)
      rows[static_cast<size_t>(column * k + row)] = source[row * n + column];
  return write_floats(dtype, {n, 1, k}, rows);
}

void append_bias(const std::vector<float>& bias, std::vector<Tensor>& constants) {
  if (!bias.empty())
    constants.push_back(Tensor::of<float>({static_cast<int64_t>(bias.size())}, std::span<const float>(bias)));
}

std::string activation_text(const Activation& activation) {
  return fmt::format("#define ACTIVATION {}\n#define ALPHA {}\n#define BETA {}\n", static_cast<int>(activation.kind),
                     real_text(activation.alpha), real_text(activation.beta));
}

std::string step_text(const EpilogueStep& step, size_t place) {
  switch (step.kind) {
    case EpilogueStep::Kind::activation: return "activate(sum)";
    case EpilogueStep::Kind::residual: return "sum + residual";
    case EpilogueStep::Kind::bias: return "sum + late_bias";
    case EpilogueStep::Kind::formula: return fmt::format("formula_{}(sum)", place);
    case EpilogueStep::Kind::rounding: break;
  }
  const Rounding& to = step.rounding;
  return rounding_call("sum", to.scale, to.low, to.high, to.of_nan);
}

std::string formulas_text(const std::vector<EpilogueStep>& steps) {
  std::string text;
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].kind == EpilogueStep::Kind::formula)
      text += fmt::format("static inline float formula_{}(float o0) {{\n{}}}\n", i,
                          statements(formula_of(steps[i].nodes, steps[i].from), "float"));
  return text.empty() ? text : std::string("typedef float S;\n") + kernels::formula + text;
}

std::string epilogue_text(const RegionMatch& match, const EpilogueCode& epilogue) {
  std::string steps;
  for (size_t i = 0; i < match.steps.size(); ++i) steps += fmt::format("  sum = {};\n", step_text(match.steps[i], i));
  return fmt::format("#define HAS_BIAS {}\n#define LATE_BIAS {}\n#define HAS_RESIDUAL {}\n", epilogue.bias,
                     match.late_bias, epilogue.residual >= 0) +
         activation_text(epilogue.activation) + kernels::activation + kernels::rounding + formulas_text(match.steps) +
         fmt::format(
             "static inline float finish(float sum, float residual, float late_bias = 0) {{\n{}  return sum;\n}}\n",
             steps);
}

}  // namespace hone::cuda
