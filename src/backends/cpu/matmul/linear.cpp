// SPDX-License-Identifier: Apache-2.0
//
// y[..., N] = epilogue(x[..., K] W + b): one matmul, all leading axes are rows. Few rows take as long as the weights take
// to be read: where rounding is allowed they are kept in 16 bits, and everything is computed in f32.
#include <algorithm>
#include <cmath>

#include "backends/cpu/conv/pack.h"
#include "backends/cpu/jit/tile_code.h"
#include "backends/cpu/matmul/gemm_kernel.h"
#include "backends/cpu/matmul/linear_region.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone::cpu {
namespace {

constexpr int64_t kFewRows = 32;
constexpr float kLargestHalf = 65504;

struct TiledLinear {
  LinearCode linear;
  GemmConfig config;
  static void fields(auto& self, auto& visit) {
    LinearCode::fields(self.linear, visit);
    GemmConfig::fields(self.config, visit);
  }
};

GemmShape gemm_shape(const Dims& output, int64_t k) {
  return {.m = elements(output) / output.back(), .n = output.back(), .k = k};
}

/// What these weights may be rounded to.
std::optional<NarrowType> narrow_type(const Problem& problem, const Tensor& weights, Isa isa) {
  if (problem.allowed.f16 && has_half_loads(isa)) {
    const Floats values(weights);
    const auto fits = [](float value) { return std::fabs(value) <= kLargestHalf; };
    if (std::all_of(values.data(), values.data() + weights.size(), fits)) return NarrowType::f16;
  }
  return problem.allowed.bf16 ? std::optional(NarrowType::bf16) : std::nullopt;
}

std::vector<GemmConfig> candidates_for(const Problem& problem, const Node& node, const GemmShape& shape,
                                       const CpuInfo& info) {
  std::vector<GemmConfig> all = gemm_candidates(shape, info.isa, info.workers);
  if (shape.m > kFewRows) return all;
  GemmConfig config = all.front();
  config.narrow = narrow_type(problem, *node.input(1)->constant, info.isa);
  if (!config.narrow) return all;
  while (!tile_fits_narrow(info.isa, config.pixels, config.vectors))
    --(config.vectors > 1 ? config.vectors : config.pixels);
  all.insert(all.begin(), config);
  return all;
}

class Linear final : public CpuKernel {
 public:
  Linear(const TiledLinear& code, const GemmShape& shape, Isa isa)
      : binding_(code.linear.input, code.linear.epilogue),
        kernel_(shape, code.linear.epilogue.epilogue(), code.config, isa) {}
  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const ConvArgs args = binding_.args(bindings);
    kernel_.run(worker, workers, {args.src, args.weights, args.bias, args.residual, args.dst});
  }

 private:
  ConvBinding binding_;
  GemmKernel kernel_;
};

struct LinearFamily {
  static constexpr std::string_view kName = "linear";
  static constexpr int kVersion = 2;
  static constexpr bool kPacksForIsa = true;
  using Params = GemmConfig;
  using Code = TiledLinear;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::optional<LinearRegion> region = offered_linear_region(problem, kName, out);
    if (!region) return;
    const Node& node = region->node();
    const GemmShape shape = gemm_shape(node.output()->type.shape.values(), region->code.k);
    for (const GemmConfig& config : candidates_for(problem, node, shape, info))
      out.offer(linear_tactic(kName, problem, write_fields(config)));
  }

  static Cost cost(const Problem&, const Params& config, const Tactic&) {
    return {.arithmetic = 1.5, .operands = 2, .weights = config.narrow ? 0.25 : 0.5};
  }

  static Built<Code> compile(const Problem& problem, const Params& config, const Tactic&) {
    const LinearRegion region = *read_linear_region(problem.region);
    const int64_t n = region.code.n, k = region.code.k, panel = config.panel_channels(cpu_info(problem.device).isa);
    const Floats weights = region.weights();
    Tensor packed = make_floats(packed_gemm_floats(n, k, panel), [&](float* to) {
      pack_gemm_weights(weights.data(), n, k, region.transposed ? k : n, region.transposed, panel, config.depth, to);
    });
    if (config.narrow) packed = write_floats(config.weights(), packed.dims(), packed.data<float>());
    return {{region.code, config}, with_packed_bias(std::move(packed), region.bias(), n, 1, panel)};
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&, const CpuInfo& info) {
    const int64_t panel = code.config.panel_channels(info.isa), n = code.linear.n;
    return with_packed_bias(
        {code.config.weights(), {static_cast<int64_t>(packed_bias_floats(n, 1, panel)), code.linear.k}},
        code.linear.epilogue, n, 1, panel);
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    code.linear.require_operands(shapes);
    require_widening(code.config, info.isa);
    return std::make_shared<Linear>(code, gemm_shape(shapes.outputs[0].dims, code.linear.k), info.isa);
  }
};

}  // namespace

const CpuTactic tactics::linear = describe<LinearFamily>();

}  // namespace hone::cpu
