// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/conv/convolution.h"

#include <algorithm>

#include "backends/cpu/conv/pack.h"

namespace hone::cpu {
namespace {

/// Two sizes of an attribute: height and width, height 1 for one-dimensional convolutions.
std::vector<int64_t> as_pair(const std::vector<int64_t>& values, int64_t missing) {
  return values.size() == 1 ? std::vector<int64_t>{missing, values[0]} : values;
}

std::vector<int64_t> as_four_pads(const std::vector<int64_t>& pads) {
  return pads.size() == 2 ? std::vector<int64_t>{0, pads[0], 0, pads[1]} : pads;
}

/// Top or left pads of SAME_UPPER and SAME_LOWER, which follow from the size.
void same_pads(bool upper, int64_t size, int64_t kernel, int64_t stride, int64_t dilation, int64_t& before,
               int64_t& after) {
  const int64_t out = (size + stride - 1) / stride;
  const int64_t total = std::max<int64_t>(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - size);
  before = upper ? total / 2 : total - total / 2;
  after = total - before;
}

bool accepts(Operands operands, DType type) {
  return type == DType::f32 || (operands == Operands::f32_or_bf16 && type == DType::bf16);
}

std::string reason_against(const Problem& problem, const Node& conv, const RegionMatch& match, Operands operands) {
  if (problem.device.architecture == "scalar") return "needs AVX2";
  const Value* x = conv.input(0);
  const size_t rank = x->type.shape.rank();
  if (rank != 3 && rank != 4) return fmt::format("{}-dimensional convolution", rank - 2);
  if (!accepts(operands, x->type.dtype)) return fmt::format("input is {}, not f32", name_of(x->type.dtype));
  if (input_index(problem.region, x) < 0) return "its input is a constant";
  if (!conv.input(1)->is_constant() || (conv.input(2) != nullptr && !conv.input(2)->is_constant()))
    return "weights are not constant";
  if (x->type.shape.elements() == Dim(0)) return "empty input";
  return match.refusal;
}

ConvRegion collect(const Problem& problem, const Node& conv, RegionMatch match) {
  ConvRegion region{std::move(match), input_index(problem.region, conv.input(0)), {}};
  const Dims& w = conv.input(1)->constant->dims();
  Attrs& attrs = region.attrs;
  attrs.set("input", int64_t{region.input});
  attrs.set("filter", as_pair({w.begin() + 2, w.end()}, 1));
  attrs.set("strides", as_pair(conv.attrs.integers("strides"), 1));
  attrs.set("dilations", as_pair(conv.attrs.integers("dilations"), 1));
  attrs.set("pads", as_four_pads(conv.attrs.integers("pads")));
  attrs.set("auto_pad", conv.attrs.text("auto_pad"));
  attrs.set("group", conv.attrs.integer("group"));
  write_epilogue(attrs, region.match, conv.input(2) != nullptr || !region.match.biases.empty());
  return region;
}

}  // namespace

std::optional<ConvRegion> read_conv_region(const Problem& problem, const OpDef& op, std::string_view family,
                                           const CpuInfo&, Candidates& out, Operands operands) {
  const Node* conv = anchor_of(problem.region, op);
  if (conv == nullptr) return std::nullopt;
  RegionMatch match = match_region(problem.region, conv, conv->output()->type.shape.rank() - 1);
  if (std::string reason = reason_against(problem, *conv, match, operands); !reason.empty()) {
    out.refuse(family, std::move(reason));
    return std::nullopt;
  }
  ConvRegion region = collect(problem, *conv, std::move(match));
  const int64_t oc = conv->output()->type.shape[1].value();
  region.attrs.set("oc", oc);
  return region;
}

ConvRegion conv_region(const Problem& problem, const OpDef& op, Operands operands) {
  Candidates refusals;
  std::optional<ConvRegion> region = read_conv_region(problem, op, "", {}, refusals, operands);
  HONE_ASSERT(region.has_value(), "the region was refused: {}",
              refusals.refusals().empty() ? "other anchor" : refusals.refusals()[0].reason);
  return std::move(*region);
}

ImageSize image_size(const Dims& dims) {
  HONE_CHECK(dims.size() == 3 || dims.size() == 4, "a convolution in the plan has an operand of rank {}", dims.size());
  return {dims[0], dims[1], dims.size() == 3 ? 1 : dims[2], dims.back()};
}

Dims input_dims(const Problem& problem, const ConvRegion& region) {
  return problem.region.inputs()[static_cast<size_t>(region.input)]->type.shape.values();
}

ConvShape conv_shape(const Attrs& attrs, const Dims& input, Layout layout) {
  const auto numbers = [&](std::string_view name, size_t count, int64_t low) -> const std::vector<int64_t>& {
    const std::vector<int64_t>& values = attrs.integers(name);
    const bool valid = values.size() == count &&
                       std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= low && v < (1 << 20); });
    HONE_CHECK(valid, "a convolution in the plan has bad {}", name);
    return values;
  };
  const ImageSize size = image_size(input);
  const auto &filter = numbers("filter", 2, 1), &strides = numbers("strides", 2, 1),
             &dilations = numbers("dilations", 2, 1), &pads = numbers("pads", 4, -(1 << 20));
  ConvShape shape;
  shape.n = size.n, shape.ic = size.c, shape.ih = size.h, shape.iw = size.w;
  shape.oc = bounded(attrs, "oc", 1, 1 << 24);
  shape.groups = bounded(attrs, "group", 1, 1 << 24);
  shape.kh = filter[0], shape.kw = filter[1];
  shape.stride_h = strides[0], shape.stride_w = strides[1];
  shape.dilation_h = dilations[0], shape.dilation_w = dilations[1];
  shape.pad_top = pads[0], shape.pad_left = pads[1], shape.pad_bottom = pads[2], shape.pad_right = pads[3];
  const std::string& auto_pad = attrs.text("auto_pad");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    const bool upper = auto_pad == "SAME_UPPER";
    same_pads(upper, shape.ih, shape.kh, shape.stride_h, shape.dilation_h, shape.pad_top, shape.pad_bottom);
    same_pads(upper, shape.iw, shape.kw, shape.stride_w, shape.dilation_w, shape.pad_left, shape.pad_right);
  }
  shape.src_layout = layout == Layout::linear && !same_bytes(input, Layout::linear, Layout::channels_last)
                         ? SrcLayout::nchw
                         : SrcLayout::nhwc;
  return shape;
}

ConvShape checked_conv_shape(const Attrs& attrs, const KernelShapes& shapes, Operands operands) {
  check_binding(attrs, shapes, operands);
  const ConcreteType& input = shapes.inputs[static_cast<size_t>(attrs.integer("input"))];
  ConvShape shape = conv_shape(attrs, input.dims, input.layout);
  const ImageSize out = image_size(shapes.outputs[0].dims);
  const bool valid = shape.ic % shape.groups == 0 && shape.oc % shape.groups == 0 && out.n == shape.n &&
                     out.c == shape.oc && out.h == shape.oh() && out.w == shape.ow();
  HONE_CHECK(valid, "a convolution in the plan gives {}, not {}", join_dims(shapes.outputs[0].dims),
             join_dims(std::vector{shape.n, shape.oc}));
  return shape;
}

Tactic conv_tactic(std::string_view family, const Problem& problem, const ConvRegion& region, Layout input,
                   Attrs params) {
  std::vector<Layout> in(problem.region.inputs().size(), Layout::channels_last);
  in[static_cast<size_t>(region.input)] = input;
  return {"cpu", std::string(family), std::move(params), std::move(in), {Layout::channels_last}};
}

void write_config(Attrs& attrs, const ConvConfig& config) {
  attrs.set("pixels", int64_t{config.pixels});
  attrs.set("vectors", int64_t{config.vectors});
  attrs.set("depth", int64_t{config.depth});
  attrs.set("panels", int64_t{config.panels});
  attrs.set("prefetch", int64_t{config.prefetch});
  if (config.weights != DType::f32) attrs.set("weights", std::string(name_of(config.weights)));
}

ConvConfig read_config(const Attrs& attrs) {
  ConvConfig config;
  config.pixels = static_cast<int>(bounded(attrs, "pixels", 1, 64));
  config.vectors = static_cast<int>(bounded(attrs, "vectors", 1, 16));
  config.depth = static_cast<int>(bounded(attrs, "depth", 0, 1 << 24));
  config.panels = static_cast<int>(bounded(attrs, "panels", 0, 1 << 24));
  config.prefetch = bounded(attrs, "prefetch", 0, 1) != 0;
  if (attrs.has("weights")) {
    const std::optional<DType> kept = parse_dtype(attrs.text("weights"));
    HONE_CHECK(kept == DType::f32 || kept == DType::bf16 || kept == DType::f16,
               "a kernel in the plan keeps its weights as {}", attrs.text("weights"));
    config.weights = *kept;
  }
  return config;
}

void merge(Attrs& into, const Attrs& from) {
  for (const auto& [name, value] : from) into.set(name, value);
}

void check_binding(const Attrs& attrs, const KernelShapes& shapes, Operands operands) {
  const int64_t inputs = static_cast<int64_t>(shapes.inputs.size());
  const int64_t input = bounded(attrs, "input", 0, inputs - 1);
  const int64_t residual = bounded(attrs, "residual", -1, inputs - 1);
  HONE_CHECK(shapes.outputs.size() == 1, "a kernel in the plan has {} results", shapes.outputs.size());
  const DType type = shapes.inputs[static_cast<size_t>(input)].dtype, result = shapes.outputs[0].dtype;
  HONE_CHECK(accepts(operands, type), "a kernel in the plan has an input of {}", name_of(type));
  HONE_CHECK(accepts(operands, result), "a kernel in the plan has a result of {}", name_of(result));
  if (residual >= 0)
    HONE_CHECK(shapes.inputs[static_cast<size_t>(residual)] == shapes.outputs[0],
               "a kernel in the plan adds tensors of different sizes");
}

void require_bias(const Attrs& attrs, const KernelShapes& shapes, int64_t oc, int64_t groups, int64_t panel) {
  if (attrs.integer("bias") == 0) return;
  require_constant(shapes, 1, DType::f32, Dims{static_cast<int64_t>(packed_bias_floats(oc, groups, panel))});
}

Tensor packed_bias(const std::vector<float>& bias, int64_t oc, int64_t groups, int64_t panel) {
  return make_floats(packed_bias_floats(oc, groups, panel),
                     [&](float* packed) { pack_bias(bias.data(), oc, groups, panel, packed); });
}

Compiled finish_conv(std::string_view family, const Problem& problem, const ConvRegion& region, const Tactic& tactic,
                     Tensor weights, int64_t oc, int64_t groups, int64_t panel) {
  Compiled compiled;
  compiled.constants.push_back(std::move(weights));
  if (const std::vector<float> bias = collect_bias(region.match, region.match.anchor->input(2), oc); !bias.empty())
    compiled.constants.push_back(packed_bias(bias, oc, groups, panel));
  Attrs attrs = region.attrs;
  merge(attrs, tactic.params);
  attrs.set("isa", std::string(to_string(cpu_info(problem.device).isa)));
  compiled.code = encode_code(std::string(family), attrs);
  return compiled;
}

}  // namespace hone::cpu
