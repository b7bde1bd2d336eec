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

void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
  const std::optional<ConvRegion> region = read_conv_region(problem, ops::conv, "conv", info, out);
  if (!region) return;
  const Dims input = input_dims(problem, *region);
  const ConvShape shape = conv_shape(region->attrs, input, Layout::channels_last);
  if (is_depthwise(shape)) return out.refuse("conv", "depthwise_conv is the kernel for it");
  const auto offer = [&](Layout layout) {
    for (const ConvConfig& config : conv_candidates(conv_shape(region->attrs, input, layout), info.isa, info.workers)) {
      Attrs params;
      write_config(params, config);
      out.offer(conv_tactic("conv", problem, *region, layout, std::move(params)));
    }
  };
  if (shape.ic <= kFewChannels && shape.groups == 1 && region->match.residual != region->input) offer(Layout::linear);
  offer(Layout::channels_last);
}

Compiled compile(const Problem& problem, const Tactic& tactic) {
  const ConvRegion region = conv_region(problem, ops::conv);
  const Isa isa = cpu_info(problem.device).isa;
  const ConvConfig config = read_config(tactic.params);
  const ConvShape shape =
      conv_shape(region.attrs, input_dims(problem, region), tactic.in[static_cast<size_t>(region.input)]);
  const int64_t panel = config.panel_channels(isa);

  const std::vector<float> weights = scaled_weights(region.match, *region.match.anchor->input(1)->constant);
  Tensor packed_weights = make_floats(packed_conv_floats(shape, panel), [&](float* packed) {
    pack_conv_weights(weights.data(), shape, panel, config.depth, packed);
  });
  return finish_conv("conv", problem, region, tactic, std::move(packed_weights), shape.oc, shape.groups, panel);
}

class Conv final : public CpuKernel {
 public:
  Conv(const Attrs& attrs, const ConvShape& shape, Isa isa)
      : binding_(attrs), kernel_(shape, read_epilogue(attrs), read_config(attrs), isa) {}
  void run(int, int worker, int workers, const Bindings& bindings) const override {
    kernel_.run(worker, workers, binding_.args(bindings));
  }

 private:
  ConvBinding binding_;
  ConvKernel kernel_;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  const ConvShape shape = checked_conv_shape(attrs, shapes);
  const ConvConfig config = read_config(attrs);
  const int64_t panel = config.panel_channels(info.isa);
  const auto channels = static_cast<int64_t>(packed_bias_floats(shape.oc, shape.groups, panel));
  require_constant(shapes, 0, config.weights, Dims{channels, shape.group_ic(), shape.kh, shape.kw});
  require_bias(attrs, shapes, shape.oc, shape.groups, panel);
  return std::make_shared<Conv>(attrs, shape, info.isa);
}

}  // namespace

const CpuTactic tactics::conv = {"conv", propose, compile, load};

}  // namespace hone::cpu
