// SPDX-License-Identifier: Apache-2.0

#include "regions/conv_region.h"

#include <algorithm>

#include "ops/ops.h"
#include "regions/match_region.h"

namespace hone {
namespace {

Padding padding_of(const std::string& auto_pad) {
  if (auto_pad == "SAME_UPPER") return Padding::same_upper;
  return auto_pad == "SAME_LOWER" ? Padding::same_lower : Padding::given;
}

ConvCode code_of(const Graph& region, const RegionMatch& match, const WindowAttrs& window, bool bias) {
  const Node& node = *match.anchor;
  return {.input = std::max(0, input_index(region, undecoded(node.input(0)))),
          .filter = window.kernel,
          .strides = window.strides,
          .dilations = window.dilations,
          .pads = window.auto_pad == "VALID" ? Dims(window.pads.size(), 0) : window.pads,
          .padding = padding_of(window.auto_pad),
          .groups = node.attrs.integer("group"),
          .channels = node.output()->type.shape[1].value(),
          .epilogue = epilogue_code(match, bias)};
}

bool within_bounds(const ConvCode& code) {
  const auto all = [](const Dims& list, int64_t low) {
    return std::all_of(list.begin(), list.end(), [&](int64_t v) { return v >= low && v <= ConvCode::kMostSteps; });
  };
  return all(code.filter, 1) && all(code.strides, 1) && all(code.dilations, 1) &&
         all(code.pads, -ConvCode::kMostSteps) && code.channels <= ConvCode::kMostChannels;
}

}  // namespace

std::optional<ConvCode> conv_code(const Graph& region, const RegionMatch& match, const WindowAttrs& window, bool bias) {
  ConvCode code = code_of(region, match, window, bias);
  return within_bounds(code) ? std::optional(std::move(code)) : std::nullopt;
}

void ConvCode::require_axes(size_t axes) const {
  const bool valid =
      filter.size() == axes && strides.size() == axes && dilations.size() == axes && pads.size() == 2 * axes;
  HONE_CHECK(valid, "a convolution in the plan has attributes of another rank than {}", axes + 2);
}

void ConvCode::require_operands(const KernelShapes& shapes) const {
  require_window(shapes);
  require_residual(epilogue, shapes);
}

void ConvCode::require_window(const KernelShapes& shapes) const {
  HONE_CHECK(input < static_cast<int64_t>(shapes.inputs.size()) && shapes.outputs.size() == 1,
             "a convolution in the plan has the input {} of {} and {} results", input, shapes.inputs.size(),
             shapes.outputs.size());
  const Dims &in = input_type(shapes).dims, &out = shapes.outputs[0].dims;
  HONE_CHECK(in.size() >= 3 && out.size() == in.size(), "a convolution in the plan takes {} to {}", join_dims(in),
             join_dims(out));
  require_axes(in.size() - 2);
  HONE_CHECK(in[1] % groups == 0 && channels % groups == 0 && out[0] == in[0] && out[1] == channels,
             "a convolution in the plan of {} gives {}, not {} channels in {} groups", join_dims(in), join_dims(out),
             channels, groups);
}

Dims ConvCode::pads_for(std::span<const int64_t> sizes) const {
  if (padding == Padding::given) return pads;
  Dims result(pads.size());
  for (size_t i = 0; i < sizes.size(); ++i)
    std::tie(result[i], result[i + sizes.size()]) =
        same_padding(sizes[i], filter[i], strides[i], dilations[i], padding == Padding::same_upper);
  return result;
}

std::optional<ConvRegion> read_conv_region(const Graph& region, Roundings roundings) {
  const Node* node = anchor_of(region, ops::conv);
  const bool transposed = node == nullptr;
  if (transposed) node = anchor_of(region, ops::conv_transpose);
  if (node == nullptr) return std::nullopt;
  RegionMatch match = match_region(region, node, node->output()->type.shape.rank() - 1, roundings);
  WindowAttrs window(node->attrs, node->input(0)->type.shape.rank() - 2, kernel_of_weight(node->input(1)->type.shape));
  std::optional<ConvCode> code = conv_code(region, match, window, node->input(2) != nullptr || !match.biases.empty());
  if (match && !code) match.refusal = kBeyondBounds;
  return ConvRegion{std::move(match), code.value_or(ConvCode{}), std::move(window), transposed};
}

Floats ConvRegion::weights() const { return scaled_weights(match, *node().input(1)->constant); }

std::vector<float> ConvRegion::bias() const { return collect_bias(match, node().input(2), code.channels); }

}  // namespace hone
