// SPDX-License-Identifier: Apache-2.0
//
// 3x3 convolution by Winograd's transforms: less arithmetic, some rounding. Each output size m is a tactic of its own.
#include "backends/cpu/conv/convolution.h"
#include "backends/cpu/conv/pack.h"
#include "backends/cpu/conv/winograd_kernel.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

WinogradConfig read_winograd_config(const Attrs& attrs) {
  WinogradConfig config;
  config.output = static_cast<int>(bounded(attrs, "output", 2, 6));
  config.tiles = static_cast<int>(bounded(attrs, "tiles", 1, 4096));
  config.pixels = static_cast<int>(bounded(attrs, "pixels", 1, 64));
  config.vectors = static_cast<int>(bounded(attrs, "vectors", 1, 16));
  config.panels = static_cast<int>(bounded(attrs, "panels", 0, 1 << 24));
  HONE_CHECK(config.output % 2 == 0, "a Winograd kernel in the plan has tiles of {}", config.output);
  return config;
}

void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
  const Node* node = anchor_of(problem.region, ops::conv);
  if (node == nullptr || node->attrs.integers("kernel_shape") != std::vector<int64_t>{3, 3}) return;
  const std::optional<ConvRegion> region = read_conv_region(problem, ops::conv, "winograd", info, out);
  if (!region) return;
  const ConvShape shape = conv_shape(region->attrs, input_dims(problem, *region), Layout::channels_last);
  if (!winograd_applies(shape)) return out.refuse("winograd", "stride, dilation or groups other than 1");
  const std::vector<WinogradConfig> configs = winograd_candidates(shape, info.isa, info.workers);
  if (configs.empty())
    out.refuse("winograd", fmt::format("{} to {} channels are too few for the transforms to pay", shape.ic, shape.oc));
  for (const WinogradConfig& config : configs)
    out.offer(conv_tactic("winograd", problem, *region, Layout::channels_last,
                          {{"output", int64_t{config.output}},
                           {"tiles", int64_t{config.tiles}},
                           {"pixels", int64_t{config.pixels}},
                           {"vectors", int64_t{config.vectors}},
                           {"panels", int64_t{config.panels}}}));
}

Compiled compile(const Problem& problem, const Tactic& tactic) {
  const ConvRegion region = conv_region(problem, ops::conv);
  const Isa isa = cpu_info(problem.device).isa;
  const WinogradConfig config = read_winograd_config(tactic.params);
  const int64_t panel = config.panel_channels(isa);
  const ConvShape shape = conv_shape(region.attrs, input_dims(problem, region), Layout::channels_last);

  const std::vector<float> weights = scaled_weights(region.match, *region.match.anchor->input(1)->constant);
  Tensor packed_weights = make_floats(packed_winograd_floats(shape, config, panel), [&](float* packed) {
    pack_winograd_weights(weights.data(), shape, config, panel, packed);
  });
  return finish_conv("winograd", problem, region, tactic, std::move(packed_weights), shape.oc, 1, panel);
}

class Winograd final : public CpuKernel {
 public:
  Winograd(const Attrs& attrs, const ConvShape& shape, const CpuInfo& info)
      : binding_(attrs),
        workers_(info.workers),
        kernel_(shape, read_epilogue(attrs), read_winograd_config(attrs), info.isa) {}
  size_t workspace_bytes() const override {
    return kernel_.scratch_floats() * sizeof(float) * static_cast<size_t>(workers_);
  }
  void run(int, int worker, int workers, const Bindings& bindings) const override {
    kernel_.run(worker, workers, binding_.args(bindings), static_cast<float*>(bindings.workspace));
  }

 private:
  ConvBinding binding_;
  int workers_;
  WinogradKernel kernel_;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  const ConvShape shape = checked_conv_shape(attrs, shapes);
  HONE_CHECK(winograd_applies(shape), "a Winograd kernel in the plan is not for a 3x3 convolution of stride 1");
  const WinogradConfig config = read_winograd_config(attrs);
  const int64_t panel = config.panel_channels(info.isa), n = config.output + 2,
                channels = static_cast<int64_t>(packed_bias_floats(shape.oc, 1, panel));
  require_constant(shapes, 0, DType::f32, Dims{channels, shape.ic, n, n});
  require_bias(attrs, shapes, shape.oc, 1, panel);
  return std::make_shared<Winograd>(attrs, shape, info);
}

}  // namespace

const CpuTactic tactics::winograd = {"winograd", propose, compile, load};

}  // namespace hone::cpu
