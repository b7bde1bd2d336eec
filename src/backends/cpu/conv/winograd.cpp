// SPDX-License-Identifier: Apache-2.0
//
// 3x3 convolution by Winograd's transforms: less arithmetic, some rounding. Each output size m is a tactic of its own.
#include "backends/cpu/conv/convolution.h"
#include "backends/cpu/conv/pack.h"
#include "backends/cpu/conv/winograd_kernel.h"
#include "base/checked.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

using WinogradCode = TiledConv<WinogradConfig>;

class Winograd final : public CpuKernel {
 public:
  Winograd(const WinogradCode& code, const ConvShape& shape, const CpuInfo& info)
      : binding_(code.conv.input, code.conv.epilogue),
        workers_(info.workers),
        kernel_(shape, code.conv.epilogue.epilogue(), code.config, info.isa) {}
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

ConvShape checked_shape(const WinogradCode& code, const KernelShapes& shapes) {
  const ConvShape shape = checked_conv_shape(code.conv, shapes);
  HONE_CHECK(winograd_applies(shape), "a Winograd kernel in the plan is not for a 3x3 convolution of stride 1");
  HONE_CHECK(code.config.output % 2 == 0, "a Winograd kernel in the plan has tiles of {}", code.config.output);
  return shape;
}

struct WinogradFamily {
  static constexpr std::string_view kName = "winograd";
  static constexpr int kVersion = 1;
  static constexpr bool kPacksForIsa = true;
  using Params = WinogradConfig;
  using Code = WinogradCode;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const Node* node = anchor_of(problem.region, ops::conv);
    if (node == nullptr || node->attrs.integers("kernel_shape") != std::vector<int64_t>{3, 3}) return;
    const std::optional<ConvRegion> region = offered_conv_region(problem, ops::conv, kName, out);
    if (!region) return;
    const ConvShape shape = conv_shape(*region, Layout::channels_last);
    if (!winograd_applies(shape)) return out.refuse(kName, "stride, dilation or groups other than 1");
    const std::vector<WinogradConfig> configs = winograd_candidates(shape, info.isa, info.workers);
    if (configs.empty())
      out.refuse(kName, fmt::format("{} to {} channels are too few for the transforms to pay", shape.ic, shape.oc));
    for (const WinogradConfig& config : configs)
      if (config.output > 4 && !problem.allowed.tf32)  // 6e-6 of the largest result, the others 1e-6
        out.refuse(kName, "tiles of 6 x 6 round more than f32 may where TF32 is not allowed");
      else out.offer(conv_tactic(kName, problem, *region, Layout::channels_last, write_fields(config)));
  }

  /// Whole tiles of n x n products make m x m results, which take 9 of each the direct way; the transforms of the inputs are
  /// shared by the output channels, those of the results by the input channels. The weights are transformed, and larger.
  static Cost cost(const Problem& problem, const Params& config, const Tactic&) {
    const ConvShape shape = conv_shape(*read_conv_region(problem.region), Layout::channels_last);
    const int64_t m = config.output, n = m + 2;
    const double grown = static_cast<double>(n * n) / 9;
    const double products = grown * static_cast<double>(ceil_divide(shape.oh(), m) * ceil_divide(shape.ow(), m)) /
                            static_cast<double>(shape.oh() * shape.ow());
    const double transforms = 10.0 / static_cast<double>(shape.ic) + 10.0 / static_cast<double>(shape.oc);
    return {.arithmetic = products * (2.2 + transforms), .operands = 4 * products, .weights = 0.9 * grown};
  }

  static Built<Code> compile(const Problem& problem, const Params& config, const Tactic&) {
    const ConvRegion region = *read_conv_region(problem.region);
    const ConvShape shape = conv_shape(region, Layout::channels_last);
    const int64_t panel = config.panel_channels(cpu_info(problem.device).isa);
    const Floats weights = region.weights();
    Tensor packed = make_floats(packed_winograd_floats(shape, config, panel),
                                [&](float* to) { pack_winograd_weights(weights.data(), shape, config, panel, to); });
    return {{region.code, config}, with_packed_bias(std::move(packed), region.bias(), shape.oc, 1, panel)};
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const ConvShape shape = checked_shape(code, shapes);
    const int64_t panel = code.config.panel_channels(info.isa), n = code.config.output + 2;
    const auto channels = static_cast<int64_t>(packed_bias_floats(shape.oc, 1, panel));
    return with_packed_bias({DType::f32, {channels, shape.ic, n, n}}, code.conv.epilogue, shape.oc, 1, panel);
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    return std::make_shared<Winograd>(code, checked_shape(code, shapes), info);
  }
};

}  // namespace

const CpuTactic tactics::winograd = describe<WinogradFamily>();

}  // namespace hone::cpu
