// SPDX-License-Identifier: Apache-2.0
//
// Convolution with one filter per channel, vectors along the channels.
#include "backends/cpu/conv/convolution.h"
#include "backends/cpu/conv/depthwise_kernel.h"
#include "backends/cpu/conv/pack.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

using DepthwiseCode = TiledConv<DepthwiseConfig>;

ConvShape checked_shape(const DepthwiseCode& code, const KernelShapes& shapes) {
  const ConvShape shape = checked_conv_shape(code.conv, shapes, Operands::f32_or_bf16);
  const DType type = code.conv.input_type(shapes).dtype;
  HONE_CHECK(shapes.outputs[0].dtype == type, "a depthwise convolution in the plan turns {} into {}", name_of(type),
             name_of(shapes.outputs[0].dtype));
  HONE_CHECK(shape.groups == shape.ic && shape.groups == shape.oc && shape.src_layout == SrcLayout::nhwc,
             "a depthwise convolution in the plan has {} groups", shape.groups);
  return shape;
}

struct DepthwiseFamily {
  static constexpr std::string_view kName = "depthwise_conv";
  static constexpr int kVersion = 1;
  static constexpr Cost kCost = {.arithmetic = 1.2, .operands = 0.7};
  static constexpr bool kPacksForIsa = true;
  using Params = DepthwiseConfig;
  using Code = DepthwiseCode;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const Node* node = anchor_of(problem.region, ops::conv);
    if (node == nullptr || node->attrs.integer("group") == 1) return;
    const std::optional<ConvRegion> region = offered_conv_region(problem, ops::conv, kName, out, Operands::f32_or_bf16);
    if (!region) return;
    if (problem.region.outputs()[0]->type.dtype != node->input(0)->type.dtype)
      return out.refuse(kName, "its result has another type than its input");
    const ConvShape shape = conv_shape(*region, Layout::channels_last);
    if (shape.groups != shape.ic || shape.groups != shape.oc) return out.refuse(kName, "groups have several channels");
    for (const DepthwiseConfig& config : depthwise_candidates(shape, info.isa, info.workers))
      out.offer(conv_tactic(kName, problem, *region, Layout::channels_last, write_fields(config)));
  }

  static Built<Code> compile(const Problem& problem, const Params& config, const Tactic&) {
    const ConvRegion region = *read_conv_region(problem.region);
    const ConvShape shape = conv_shape(region, Layout::channels_last);
    const int64_t block = config.block_channels(cpu_info(problem.device).isa);
    const Floats weights = region.weights();
    Tensor packed = make_floats(packed_depthwise_floats(shape.oc, shape.kh, shape.kw, block), [&](float* to) {
      pack_depthwise_weights(weights.data(), shape.oc, shape.kh, shape.kw, block, to);
    });
    return {{region.code, config}, with_packed_bias(std::move(packed), region.bias(), shape.oc, 1, block)};
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const ConvShape shape = checked_shape(code, shapes);
    const int64_t block = code.config.block_channels(info.isa);
    const auto channels = static_cast<int64_t>(packed_bias_floats(shape.oc, 1, block));
    return with_packed_bias({DType::f32, {channels, shape.kh, shape.kw}}, code.conv.epilogue, shape.oc, 1, block);
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const ConvShape shape = checked_shape(code, shapes);
    return std::make_shared<BoundConv<DepthwiseKernel>>(code, shape, info.isa, code.conv.input_type(shapes).dtype);
  }
};

}  // namespace

const CpuTactic tactics::depthwise_conv = describe<DepthwiseFamily>();

}  // namespace hone::cpu
