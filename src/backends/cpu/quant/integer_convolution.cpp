// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/quant/integer_convolution.h"

#include <algorithm>

#include "ops/ops.h"

namespace hone::cpu {
namespace {

IntegerShape shape_of(const ConvCode& code, const Dims& x, const Dims& y, DType a, Layout layout) {
  IntegerShape shape{.images = x[0],
                     .groups = code.groups,
                     .depth = x[1] / code.groups,
                     .columns = code.channels / code.groups,
                     .in = spatial_of(x),
                     .out = spatial_of(y),
                     .filter = code.filter,
                     .strides = code.strides,
                     .dilations = code.dilations,
                     .layout = layout,
                     .signed_a = a == DType::i8};
  shape.pads = code.pads_for(shape.in);
  shape.pads.resize(shape.in.size());
  return shape;
}

}  // namespace

std::optional<IntegerConvRegion> offered_integer_conv(const Problem& problem, const CpuInfo& info,
                                                      std::string_view family, Candidates& out) {
  std::optional<IntegerConvRegion> region = read_integer_conv_region(problem.region);
  if (!region) return std::nullopt;
  const auto refuse = [&](std::string reason) {
    out.refuse(family, std::move(reason));
    return std::nullopt;
  };
  if (info.isa == Isa::scalar) return refuse("needs AVX2");
  if (!region->match) return refuse(region->match.refusal);
  if (problem.symbolic.node_count() != problem.region.node_count())
    return refuse("an operand depends on the input's shape");
  if (region->code.sums.factor == Factor::columns && region->code.sums.factor_input >= 0)
    return refuse("the scales of its channels are no constants");
  return region;
}

IntegerShape integer_conv_shape(const IntegerConvRegion& region, Layout layout) {
  const Node& node = region.node();
  return shape_of(region.code.conv, node.input(0)->type.shape.values(), node.output()->type.shape.values(),
                  node.input(0)->type.dtype, layout);
}

IntegerShape integer_conv_shape(const IntegerConvCode& code, const KernelShapes& shapes) {
  code.require_operands(shapes);
  const ConcreteType &x = code.conv.input_type(shapes), &y = shapes.outputs[0];
  HONE_CHECK(y.layout == Layout::channels_last && (x.layout == Layout::channels_last || x.layout == Layout::linear),
             "an integer convolution in the plan turns {} into {}", name_of(x.layout), name_of(y.layout));
  HONE_CHECK(code.sums.factor != Factor::columns || code.sums.factor_input < 0,
             "an integer convolution in the plan has scales that are no constants");
  return shape_of(code.conv, x.dims, y.dims, x.dtype, x.layout);
}

bool is_depthwise(const IntegerShape& shape) {
  return shape.groups > 1 && shape.depth == 1 && shape.columns == 1 && shape.in.size() <= 2;
}

Tactic integer_conv_tactic(std::string_view family, const Problem& problem, const IntegerConvRegion& region,
                           Layout layout, Attrs params) {
  std::vector<Layout> in(problem.region.inputs().size(), Layout::linear);
  if (region.match.residual >= 0) in[static_cast<size_t>(region.match.residual)] = Layout::channels_last;
  in[static_cast<size_t>(region.code.conv.input)] = layout;
  return {"cpu", std::string(family), std::move(params), std::move(in), {Layout::channels_last}};
}

}  // namespace hone::cpu
