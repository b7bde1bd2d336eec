// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/conv/gemm_region.h"

#include <numeric>

#include "backends/cuda/support/source_text.h"
#include "ops/window.h"

namespace hone::cuda {
namespace {

constexpr int64_t kMostCodes = 1 << 17;  // whose products add up to 32 bits at most
constexpr int64_t kFewestNarrow = 16;    // channels of rows that are no whole pieces: fewer have a family of their own

/// Windows that lie side by side without padding (the patches of a vision transformer): a row of one is contiguous, channels
/// last, so that the image is one of wider pixels. Few channels become enough this way.
bool reads_patches(const ConvRegion& region) {
  const WindowAttrs& window = region.window;
  if (window.kernel.size() != 2) return false;
  const int64_t channels = region.node().input(1)->constant->dims()[1], columns = window.kernel[1],
                width = region.node().input(0)->type.shape[3].value();
  return channels % 8 != 0 && channels * columns % 8 == 0 && window.strides[1] == columns && window.dilations[1] == 1 &&
         window.pads[1] == 0 && window.pads[3] == 0 && width % columns == 0;
}

Filters filters_of(const ConvRegion& region) {
  const int64_t channels = region.node().input(1)->constant->dims()[1];
  const Dims& kernel = region.window.kernel;
  if (reads_patches(region)) return {region.code.channels, kernel[0], channels * kernel[1]};
  return {region.code.channels, elements(kernel), channels};
}

using CodesOfEach = std::vector<std::shared_ptr<const WeightCodes>>;

/// The codes of the convolution's weights, or of each matmul's; nothing where some are none.
std::optional<CodesOfEach> codes_of(const Anchors& anchors) {
  CodesOfEach list;
  const auto add = [&](const Node& node, size_t axis) {
    if (auto codes = weight_codes(*node.input(1)->constant, axis, anchors.multiplied()))
      list.push_back(std::move(codes));
  };
  if (anchors.conv) add(anchors.node(), 0);
  for (const LinearRegion& linear : anchors.linears) add(linear.node(), linear.transposed ? 0 : 1);
  return std::ssize(list) == anchors.matmuls() ? std::optional(std::move(list)) : std::nullopt;
}

std::string reason_against(const ConvRegion& region) {
  const size_t axes = region.window.kernel.size();
  if (axes != 1 && axes != 2) return fmt::format("{} spatial axes", axes);
  if (region.code.groups != 1) return "groups";
  if (region.window.auto_pad != "NOTSET") return "padding depends on the size";
  return {};
}

/// The filters of several matmuls, one after the other.
Tensor joined_rows(const std::vector<LinearRegion>& linears) {
  if (linears.size() == 1) return filter_rows(linears[0]);
  std::vector<Tensor> parts;
  for (const LinearRegion& linear : linears) parts.push_back(filter_rows(linear));
  Dims dims = parts[0].dims();
  dims[0] *= static_cast<int64_t>(parts.size());
  TensorBuilder joined(parts[0].dtype(), dims);
  std::byte* at = joined.bytes();
  for (const Tensor& part : parts) {
    std::memcpy(at, part.bytes().data(), part.bytes().size());
    at += part.bytes().size();
  }
  return joined.finish();
}

/// [filter][tap][channel] of codes.
Tensor code_rows(const Anchors& anchors, const CodesOfEach& weights) {
  const Filters filters = anchors.filters();
  TensorBuilder rows(anchors.multiplied(), {filters.count * anchors.matmuls(), filters.taps, filters.channels});
  const bool columns = !anchors.conv && !anchors.linears[0].transposed;  // [channel][filter] in the model
  auto to = rows.codes().begin();
  for (const auto& part : weights)
    for (int64_t f = 0; f < filters.count; ++f)
      for (int64_t t = 0; t < filters.taps; ++t)
        for (int64_t c = 0; c < filters.channels; ++c)
          *to++ = static_cast<uint8_t>(part->codes[static_cast<size_t>(
              columns ? c * filters.count + f : (f * filters.channels + c) * filters.taps + t)]);
  return rows.finish();
}

/// Of each filter what its sums are multiplied by; behind them, what a zero point takes off.
Tensor factors_of(const Anchors& anchors, const CodesOfEach& weights, const Tensor& rows) {
  const Decoding& coding = anchors.coding();
  std::vector<float> factors;
  for (const auto& part : weights)
    for (const float scale : part->scales) factors.push_back(coding.scale * scale * anchors.match().scale);
  const size_t filters = factors.size();
  factors.resize(2 * filters);
  if (coding.zero != 0) {
    const std::span<const int8_t> codes = rows.data<int8_t>();
    for (size_t f = 0; f < filters; ++f) {
      const std::span<const int8_t> row = codes.subspan(f * codes.size() / filters, codes.size() / filters);
      factors[filters + f] = -factors[f] * coding.zero * static_cast<float>(std::accumulate(row.begin(), row.end(), 0));
    }
  }
  return Tensor::of<float>({2, static_cast<int64_t>(filters)}, std::span<const float>(factors));
}

}  // namespace

Anchors::Anchors(const Graph& region)
    : conv(read_conv_region(region, Roundings::codes)), linears(read_linear_regions(region, Roundings::codes)) {
  if (conv && conv->transposed) conv.reset();
}

bool Anchors::patches() const { return conv && reads_patches(*conv); }

Filters Anchors::filters() const { return conv ? filters_of(*conv) : Filters{linears[0].code.n, 1, linears[0].code.k}; }

int64_t Anchors::pixels() const { return elements(node().output()->type.shape.values()) / filters().count; }

std::string reason_against_anchors(const Problem& problem, const Anchors& anchors) {
  const Node& node = anchors.node();
  const DType dtype = node.input(0)->type.dtype;
  const bool fits = dtype == DType::f16 || dtype == DType::bf16 || (anchors.coded() && dtype == DType::f32);
  if (!fits) return fmt::format("input is {}", name_of(dtype));
  if (std::string reason = reason_against_operands(problem.region, node); !reason.empty()) return reason;
  if (node.output()->type.shape.elements() == Dim(0)) return "empty result";
  if (anchors.matmuls() > kMostMatmuls) return fmt::format("{} matmuls", anchors.matmuls());
  if (anchors.conv)
    if (std::string reason = reason_against(*anchors.conv); !reason.empty()) return reason;
  // What is true at the opt sizes has to hold at all: the width decides whether patches fill it.
  if (anchors.patches())
    for (const Value* input : problem.symbolic.inputs())
      if (input->type.shape.rank() == 4 && !input->type.shape[3].is_constant()) return "the width is not fixed";
  const int64_t channels = anchors.filters().channels, unit = anchors.unit();
  const bool narrow = !anchors.coded() && unit > 1 && channels >= kFewestNarrow;
  if (unit != anchors.piece() && !narrow) return fmt::format("{} channels", channels);
  if (!anchors.match()) return anchors.match().refusal;
  if (!anchors.coded()) return {};
  const bool too_deep = anchors.filters().taps * anchors.filters().channels > kMostCodes;
  if (anchors.sums_integers() && too_deep) return "sums beyond 32 bits";
  return codes_of(anchors) ? "" : "codes, and weights that are none";
}

std::vector<Tensor> constants_for(const Anchors& anchors) {
  std::vector<Tensor> constants;
  const auto codes = anchors.coded() ? codes_of(anchors) : std::nullopt;
  if (codes) constants.push_back(code_rows(anchors, *codes));
  else constants.push_back(anchors.conv ? filter_rows(*anchors.conv) : joined_rows(anchors.linears));
  std::vector<float> bias;
  if (anchors.conv) bias = anchors.conv->bias();
  for (const LinearRegion& linear : anchors.linears)
    for (const float value : linear.bias()) bias.push_back(value);
  append_bias(bias, constants);
  if (codes) constants.push_back(factors_of(anchors, *codes, constants[0]));
  return constants;
}

std::string window_text(const Anchors& anchors) {
  Dims kernel{1, 1}, strides{1, 1}, dilations{1, 1}, pads{0, 0};
  if (anchors.conv) {
    const WindowAttrs& window = anchors.conv->window;
    const size_t shift = 2 - window.kernel.size();
    for (size_t i = 0; i < window.kernel.size(); ++i)
      kernel[shift + i] = window.kernel[i], strides[shift + i] = window.strides[i],
                     dilations[shift + i] = window.dilations[i], pads[shift + i] = window.pads[i];
    if (anchors.patches()) kernel[1] = strides[1] = 1;
  }
  std::string text = fmt::format("#define TAPS {}\n#define TAPS_W {}\n", kernel[0] * kernel[1], kernel[1]);
  const char* names[] = {"H", "W"};
  for (size_t i = 0; i < 2; ++i)
    text += fmt::format("#define STRIDE_{0} {1}\n#define DILATION_{0} {2}\n#define PAD_{0} {3}\n", names[i], strides[i],
                        dilations[i], pads[i]);
  return text;
}

std::string types_text(const Anchors& anchors) {
  return fmt::format(
      "typedef {0} T;\n#define CODED {1:d}\n#define SUMS_INTEGERS {2:d}\n#define HAS_ZERO {3:d}\n#define MMA_TYPE "
      "\"{0}\"\n#define MMA_DEPTH \"{4}\"\n",
      type_name(anchors.multiplied()), anchors.coded(), anchors.sums_integers(), anchors.coding().zero != 0,
      anchors.coded() ? 32 : 16);
}

GemmCode gemm_code(const Problem& problem, const Anchors& anchors) {
  return {.x = input_index(problem.region, undecoded(anchors.node().input(0))),
          .filters = anchors.filters().count * anchors.matmuls(),
          .images = anchors.conv.has_value(),
          .pixel = anchors.pixel(),
          .coded = anchors.coded(),
          .epilogue = anchors.epilogue(),
          .numbers = step_numbers(anchors.match())};
}

Images images_of(const GemmCode& code, const LoadContext& context) {
  const Dims &in = context.dims_of(Place{PlaceKind::input, code.x}), &out = context.shapes.outputs.at(0).dims;
  const auto matmuls = static_cast<int64_t>(context.shapes.outputs.size());
  HONE_CHECK(!in.empty() && !out.empty() && (!code.images || in.back() % code.pixel == 0),
             "a convolution in the plan reads patches of {}", code.pixel);
  Images sizes{.pixels = static_cast<int32_t>(elements(out) / (code.filters / matmuls))};
  if (!code.images) return sizes;
  sizes.in_w = static_cast<int32_t>(in.back() / code.pixel);
  sizes.out_w = static_cast<int32_t>(out.back());
  if (in.size() == 4) sizes.in_h = static_cast<int32_t>(in[2]), sizes.out_h = static_cast<int32_t>(out[2]);
  return sizes;
}

FinishParameters finish_parameters(const GemmCode& code, const LoadContext& context) {
  const auto matmuls = static_cast<int64_t>(context.shapes.outputs.size());
  HONE_CHECK(matmuls > 0 && matmuls <= kMostMatmuls && code.filters % matmuls == 0,
             "a matmul in the plan makes {} results of {} filters", matmuls, code.filters);
  for (const ConcreteType& result : context.shapes.outputs)
    HONE_CHECK(result.dims == context.shapes.outputs[0].dims && result.dtype == context.shapes.outputs[0].dtype,
               "matmuls in the plan differ");
  const Place factors{code.coded ? PlaceKind::constant : PlaceKind::none, code.epilogue.bias ? 2 : 1};
  HONE_CHECK(!code.coded || elements(context.dims_of(factors)) == 2 * code.filters,
             "a matmul in the plan has no factors of {} filters", code.filters);
  FinishParameters finish{.epilogue = epilogue_reads(code.epilogue, context, code.filters, code.numbers),
                          .factors = factors.pointer(),
                          .y = {}};
  for (int64_t i = 0; i < matmuls; ++i) finish.y[static_cast<size_t>(i)] = output(i);
  return finish;
}

}  // namespace hone::cuda
