// SPDX-License-Identifier: Apache-2.0
//
// Convolution with one filter per channel, vectors along the channels.
#include "backends/cpu/conv/convolution.h"
#include "backends/cpu/conv/depthwise_kernel.h"
#include "backends/cpu/conv/pack.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
  const Node* node = anchor_of(problem.region, ops::conv);
  if (node == nullptr || node->attrs.integer("group") == 1) return;
  const std::optional<ConvRegion> region =
      read_conv_region(problem, ops::conv, "depthwise_conv", info, out, Operands::f32_or_bf16);
  if (!region) return;
  if (problem.region.outputs()[0]->type.dtype != node->input(0)->type.dtype)
    return out.refuse("depthwise_conv", "its result has another type than its input");
  const ConvShape shape = conv_shape(region->attrs, input_dims(problem, *region), Layout::channels_last);
  if (shape.groups != shape.ic || shape.groups != shape.oc)
    return out.refuse("depthwise_conv", "groups have several channels");
  for (const DepthwiseConfig& config : depthwise_candidates(shape, info.isa, info.workers))
    out.offer(conv_tactic("depthwise_conv", problem, *region, Layout::channels_last,
                          {{"pixels", int64_t{config.pixels}}, {"vectors", int64_t{config.vectors}}}));
}

DepthwiseConfig read_depthwise_config(const Attrs& attrs) {
  return {static_cast<int>(bounded(attrs, "pixels", 1, 64)), static_cast<int>(bounded(attrs, "vectors", 1, 16))};
}

Compiled compile(const Problem& problem, const Tactic& tactic) {
  const ConvRegion region = conv_region(problem, ops::conv, Operands::f32_or_bf16);
  const Isa isa = cpu_info(problem.device).isa;
  const int64_t block = read_depthwise_config(tactic.params).block_channels(isa);
  const ConvShape shape = conv_shape(region.attrs, input_dims(problem, region), Layout::channels_last);

  const std::vector<float> weights = scaled_weights(region.match, *region.match.anchor->input(1)->constant);
  Tensor packed_weights = make_floats(packed_depthwise_floats(shape.oc, shape.kh, shape.kw, block), [&](float* packed) {
    pack_depthwise_weights(weights.data(), shape.oc, shape.kh, shape.kw, block, packed);
  });
  return finish_conv("depthwise_conv", problem, region, tactic, std::move(packed_weights), shape.oc, 1, block);
}

class DepthwiseConv final : public CpuKernel {
 public:
  DepthwiseConv(const Attrs& attrs, const ConvShape& shape, Isa isa, DType type)
      : binding_(attrs), kernel_(shape, read_epilogue(attrs), read_depthwise_config(attrs), isa, type) {}
  void run(int, int worker, int workers, const Bindings& bindings) const override {
    kernel_.run(worker, workers, binding_.args(bindings));
  }

 private:
  ConvBinding binding_;
  DepthwiseKernel kernel_;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  const ConvShape shape = checked_conv_shape(attrs, shapes, Operands::f32_or_bf16);
  const DType type = shapes.inputs[static_cast<size_t>(attrs.integer("input"))].dtype;
  HONE_CHECK(shapes.outputs[0].dtype == type, "a depthwise convolution in the plan turns {} into {}", name_of(type),
             name_of(shapes.outputs[0].dtype));
  HONE_CHECK(shape.groups == shape.ic && shape.groups == shape.oc && shape.src_layout == SrcLayout::nhwc,
             "a depthwise convolution in the plan has {} groups", shape.groups);
  const int64_t block = read_depthwise_config(attrs).block_channels(info.isa);
  const auto channels = static_cast<int64_t>(packed_bias_floats(shape.oc, 1, block));
  require_constant(shapes, 0, DType::f32, Dims{channels, shape.kh, shape.kw});
  require_bias(attrs, shapes, shape.oc, 1, block);
  return std::make_shared<DepthwiseConv>(attrs, shape, info.isa, type);
}

}  // namespace

const CpuTactic tactics::depthwise_conv = {"depthwise_conv", propose, compile, load};

}  // namespace hone::cpu
