// SPDX-License-Identifier: Apache-2.0
//
// Direct convolution with generated tiles. Images with few channels are read as they come (linear): there the channels do
// not fill a vector anyway and the reformat would cost as much as the layer.
#include "backends/cpu/conv/convolution.h"
#include "backends/cpu/conv/pack.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kFewChannels = 4;

bool is_depthwise(const ConvShape& shape) {
  return shape.groups == shape.ic && shape.groups == shape.oc && shape.groups > 1;
}

struct ConvFamily {
  static constexpr std::string_view kName = "conv";
  static constexpr int kVersion = 2;
  static constexpr Cost kCost = {.arithmetic = 1.5, .operands = 2, .weights = 0.5};
  static constexpr bool kPacksForIsa = true;
  using Params = ConvConfig;
  using Code = TiledConv<ConvConfig>;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::optional<ConvRegion> region = offered_conv_region(problem, ops::conv, kName, out);
    if (!region) return;
    const ConvShape shape = conv_shape(*region, Layout::channels_last);
    if (is_depthwise(shape)) return out.refuse(kName, "depthwise_conv is the kernel for it");
    const auto offer = [&](Layout layout) {
      for (const ConvConfig& config : conv_candidates(conv_shape(*region, layout), info.isa, info.workers))
        out.offer(conv_tactic(kName, problem, *region, layout, write_fields(config)));
    };
    if (shape.ic <= kFewChannels && shape.groups == 1 && region->match.residual != region->code.input)
      offer(Layout::linear);
    offer(Layout::channels_last);
  }

  static Built<Code> compile(const Problem& problem, const Params& config, const Tactic& tactic) {
    const ConvRegion region = *read_conv_region(problem.region);
    const ConvShape shape = conv_shape(region, tactic.in[static_cast<size_t>(region.code.input)]);
    const int64_t panel = config.panel_channels(cpu_info(problem.device).isa);
    const Floats weights = region.weights();
    Tensor packed = make_floats(packed_conv_floats(shape, panel),
                                [&](float* to) { pack_conv_weights(weights.data(), shape, panel, config.depth, to); });
    return {{region.code, config}, with_packed_bias(std::move(packed), region.bias(), shape.oc, shape.groups, panel)};
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const ConvShape shape = checked_conv_shape(code.conv, shapes);
    const int64_t panel = code.config.panel_channels(info.isa);
    const auto channels = static_cast<int64_t>(packed_bias_floats(shape.oc, shape.groups, panel));
    return with_packed_bias({code.config.weights(), {channels, shape.group_ic(), shape.kh, shape.kw}},
                            code.conv.epilogue, shape.oc, shape.groups, panel);
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    require_widening(code.config, info.isa);
    return std::make_shared<BoundConv<ConvKernel>>(code, checked_conv_shape(code.conv, shapes), info.isa);
  }
};

}  // namespace

const CpuTactic tactics::conv = describe<ConvFamily>();

}  // namespace hone::cpu
