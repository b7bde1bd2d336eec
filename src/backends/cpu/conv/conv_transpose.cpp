// SPDX-License-Identifier: Apache-2.0
//
// Transposed convolution as one ordinary convolution per phase of the stride.
#include "backends/cpu/conv/conv_transpose_kernel.h"
#include "backends/cpu/conv/convolution.h"
#include "backends/cpu/conv/pack.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

using TransposeCode = TiledConv<ConvConfig>;

/// The output's size decides what is cut off at the far side, so the pads after the image are not needed.
ConvTransposeShape transpose_shape(const ConvCode& code, const Dims& input, const Dims& output) {
  const ConvShape conv = conv_shape(code, input, Layout::channels_last);
  const ImageSize out = image_size(output);
  ConvTransposeShape shape;
  shape.n = conv.n, shape.ic = conv.ic, shape.ih = conv.ih, shape.iw = conv.iw;
  shape.oc = conv.oc, shape.oh = out.h, shape.ow = out.w, shape.kh = conv.kh, shape.kw = conv.kw;
  shape.stride_h = conv.stride_h, shape.stride_w = conv.stride_w, shape.dilation_h = conv.dilation_h,
  shape.dilation_w = conv.dilation_w;
  shape.pad_top = conv.pad_top, shape.pad_left = conv.pad_left, shape.groups = conv.groups;
  return shape;
}

ConvTransposeShape transpose_shape(const ConvRegion& region) {
  const Node& node = region.node();
  return transpose_shape(region.code, node.input(0)->type.shape.values(), node.output()->type.shape.values());
}

ConvTransposeShape checked_shape(const TransposeCode& code, const KernelShapes& shapes) {
  code.conv.require_operands(shapes);
  const ConcreteType& input = code.conv.input_type(shapes);
  HONE_CHECK(input.dtype == DType::f32 && shapes.outputs[0].dtype == DType::f32,
             "a transposed convolution in the plan turns {} into {}", name_of(input.dtype),
             name_of(shapes.outputs[0].dtype));
  const ConvTransposeShape shape = transpose_shape(code.conv, input.dims, shapes.outputs[0].dims);
  const char* reason = conv_transpose_refusal(shape);
  HONE_CHECK(reason == nullptr, "a transposed convolution in the plan cannot run: {}", reason);
  HONE_CHECK(!code.config.narrow, "a transposed convolution in the plan keeps its weights as {}",
             name_of(code.config.weights()));
  return shape;
}

/// Each tap of the filter belongs to one phase; a phase without any has one of zeros.
ConstantSpec packed_weights(const ConvTransposeShape& shape, int64_t panel) {
  const auto channels = static_cast<int64_t>(packed_bias_floats(shape.oc, shape.groups, panel));
  return {DType::f32,
          {std::max(shape.kh, shape.stride_h), std::max(shape.kw, shape.stride_w), channels, shape.ic / shape.groups}};
}

struct ConvTransposeFamily {
  static constexpr std::string_view kName = "conv_transpose";
  static constexpr int kVersion = 2;
  static constexpr Cost kCost = {.arithmetic = 1.5, .operands = 2};
  static constexpr bool kPacksForIsa = true;
  using Params = ConvConfig;
  using Code = TransposeCode;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::optional<ConvRegion> region = offered_conv_region(problem, ops::conv_transpose, kName, out);
    if (!region) return;
    if (region->code.padding != Padding::given) return out.refuse(kName, "automatic padding");
    const ConvTransposeShape shape = transpose_shape(*region);
    if (const char* reason = conv_transpose_refusal(shape)) return out.refuse(kName, reason);
    for (const ConvConfig& config : conv_transpose_candidates(shape, info.isa, info.workers))
      out.offer(conv_tactic(kName, problem, *region, Layout::channels_last, write_fields(config)));
  }

  static Built<Code> compile(const Problem& problem, const Params& config, const Tactic&) {
    const ConvRegion region = *read_conv_region(problem.region);
    const ConvTransposeShape shape = transpose_shape(region);
    const int64_t panel = config.panel_channels(cpu_info(problem.device).isa);
    const Floats weights = region.weights();
    Tensor packed = make_floats(packed_conv_transpose_floats(shape, panel), [&](float* to) {
      pack_conv_transpose_weights(weights.data(), shape, panel, config.depth, to);
    });
    return {{region.code, config}, with_packed_bias(std::move(packed), region.bias(), shape.oc, shape.groups, panel)};
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const ConvTransposeShape shape = checked_shape(code, shapes);
    const int64_t panel = code.config.panel_channels(info.isa);
    return with_packed_bias(packed_weights(shape, panel), code.conv.epilogue, shape.oc, shape.groups, panel);
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    return std::make_shared<BoundConv<ConvTransposeKernel>>(code, checked_shape(code, shapes), info.isa);
  }
};

}  // namespace

const CpuTactic tactics::conv_transpose = describe<ConvTransposeFamily>();

}  // namespace hone::cpu
