// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/conv/convolution.h"

#include "backends/cpu/conv/pack.h"
#include "backends/cpu/jit/tile_code.h"

namespace hone::cpu {
namespace {

bool accepts(Operands operands, DType type) {
  return type == DType::f32 || (operands == Operands::f32_or_bf16 && type == DType::bf16);
}

std::string reason_against(const Problem& problem, const ConvRegion& region, Operands operands) {
  if (problem.device.architecture == "scalar") return "needs AVX2";
  const Value* x = region.node().input(0);
  const size_t rank = x->type.shape.rank();
  if (rank != 3 && rank != 4) return fmt::format("{}-dimensional convolution", rank - 2);
  if (!accepts(operands, x->type.dtype)) return fmt::format("input is {}, not f32", name_of(x->type.dtype));
  if (std::string reason = reason_against_operands(problem.region, region.node()); !reason.empty()) return reason;
  if (x->type.shape.elements() == Dim(0)) return "empty input";
  return region.match.refusal;
}

}  // namespace

std::optional<ConvRegion> offered_conv_region(const Problem& problem, const OpDef& op, std::string_view family,
                                              Candidates& out, Operands operands) {
  std::optional<ConvRegion> region = read_conv_region(problem.region);
  if (!region || !region->node().is(op)) return std::nullopt;
  if (std::string reason = reason_against(problem, *region, operands); !reason.empty()) {
    out.refuse(family, std::move(reason));
    return std::nullopt;
  }
  return region;
}

ImageSize image_size(const Dims& dims) {
  HONE_CHECK(dims.size() == 3 || dims.size() == 4, "a convolution in the plan has an operand of rank {}", dims.size());
  return {dims[0], dims[1], dims.size() == 3 ? 1 : dims[2], dims.back()};
}

ConvShape conv_shape(const ConvCode& code, const Dims& input, Layout layout) {
  const ImageSize size = image_size(input);
  const size_t axes = input.size() - 2, x = axes - 1;
  const Dims pads = code.pads_for(std::span(input).subspan(2));
  ConvShape shape;
  shape.n = size.n, shape.ic = size.c, shape.ih = size.h, shape.iw = size.w;
  shape.oc = code.channels, shape.groups = code.groups;
  shape.kw = code.filter[x], shape.stride_w = code.strides[x], shape.dilation_w = code.dilations[x];
  shape.pad_left = pads[x], shape.pad_right = pads[axes + x];
  if (axes == 2) {
    shape.kh = code.filter[0], shape.stride_h = code.strides[0], shape.dilation_h = code.dilations[0];
    shape.pad_top = pads[0], shape.pad_bottom = pads[axes];
  }
  shape.src_layout = layout == Layout::linear && !same_bytes(input, Layout::linear, Layout::channels_last)
                         ? SrcLayout::nchw
                         : SrcLayout::nhwc;
  return shape;
}

ConvShape conv_shape(const ConvRegion& region, Layout layout) {
  return conv_shape(region.code, region.node().input(0)->type.shape.values(), layout);
}

ConvShape checked_conv_shape(const ConvCode& code, const KernelShapes& shapes, Operands operands) {
  code.require_operands(shapes);
  const ConcreteType &input = code.input_type(shapes), &output = shapes.outputs[0];
  HONE_CHECK(accepts(operands, input.dtype) && accepts(operands, output.dtype),
             "a convolution in the plan turns {} into {}", name_of(input.dtype), name_of(output.dtype));
  const ImageSize out = image_size(output.dims);
  const ConvShape shape = conv_shape(code, input.dims, input.layout);
  HONE_CHECK(out.h == shape.oh() && out.w == shape.ow(), "a convolution in the plan gives {}, not {}",
             join_dims(output.dims), join_dims(Dims{shape.n, shape.oc, shape.oh(), shape.ow()}));
  return shape;
}

Tactic conv_tactic(std::string_view family, const Problem& problem, const ConvRegion& region, Layout input,
                   Attrs params) {
  std::vector<Layout> in(problem.region.inputs().size(), Layout::channels_last);
  in[static_cast<size_t>(region.code.input)] = input;
  return {"cpu", std::string(family), std::move(params), std::move(in), {Layout::channels_last}};
}

std::vector<Tensor> with_packed_bias(Tensor weights, const std::vector<float>& bias, int64_t oc, int64_t groups,
                                     int64_t panel) {
  std::vector<Tensor> constants{std::move(weights)};
  if (bias.empty()) return constants;
  constants.push_back(make_floats(packed_bias_floats(oc, groups, panel),
                                  [&](float* packed) { pack_bias(bias.data(), oc, groups, panel, packed); }));
  return constants;
}

std::vector<ConstantSpec> with_packed_bias(ConstantSpec weights, const EpilogueCode& epilogue, int64_t oc,
                                           int64_t groups, int64_t panel) {
  std::vector<ConstantSpec> specs{std::move(weights)};
  if (epilogue.bias) specs.push_back({DType::f32, {static_cast<int64_t>(packed_bias_floats(oc, groups, panel))}});
  return specs;
}

void require_widening(const ConvConfig& config, Isa isa) {
  HONE_CHECK(config.weights() != DType::f16 || has_half_loads(isa),
             "a kernel in the plan keeps its weights in f16, which this processor cannot widen");
}

}  // namespace hone::cpu
