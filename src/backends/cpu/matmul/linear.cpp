// SPDX-License-Identifier: Apache-2.0
//
// y[..., N] = epilogue(x[..., K] W + b): one matrix product, all leading axes are rows. Few rows take as long as the weights take
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

GemmShape gemm_shape(const Dims& output, int64_t k) {
  return {.m = elements(output) / output.back(), .n = output.back(), .k = k};
}

/// What these weights may be rounded to; f32 where they may not.
DType narrow_type(const Problem& problem, const Tensor& weights, Isa isa) {
  if (problem.allowed.f16 && has_half_loads(isa)) {
    const Floats values(weights);
    const auto fits = [](float value) { return std::fabs(value) <= kLargestHalf; };
    if (std::all_of(values.data(), values.data() + weights.size(), fits)) return DType::f16;
  }
  return problem.allowed.bf16 ? DType::bf16 : DType::f32;
}

std::vector<GemmConfig> candidates_for(const Problem& problem, const Node& node, const GemmShape& shape,
                                       const CpuInfo& info) {
  std::vector<GemmConfig> all = gemm_candidates(shape, info.isa, info.workers);
  if (shape.m > kFewRows) return all;
  const DType narrow = narrow_type(problem, *node.input(1)->constant, info.isa);
  if (narrow == DType::f32) return all;
  GemmConfig config = all.front();
  config.weights = narrow;
  while (!tile_fits_narrow(info.isa, config.pixels, config.vectors))
    --(config.vectors > 1 ? config.vectors : config.pixels);
  all.insert(all.begin(), config);
  return all;
}

void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
  const std::optional<LinearRegion> region = read_linear_region(problem, "linear", out);
  if (!region) return;
  const Node& node = *region->match.anchor;
  const GemmShape shape = gemm_shape(node.output()->type.shape.values(), region->k);
  for (const GemmConfig& config : candidates_for(problem, node, shape, info)) {
    Attrs params;
    write_config(params, config);
    out.offer(linear_tactic("linear", problem, std::move(params)));
  }
}

Compiled compile(const Problem& problem, const Tactic& tactic) {
  const LinearRegion region = linear_region(problem);
  const Node* node = region.match.anchor;
  const Isa isa = cpu_info(problem.device).isa;
  const GemmConfig config = read_config(tactic.params);
  const int64_t panel = config.panel_channels(isa);

  const std::vector<float> weights = scaled_weights(region.match, *node->input(1)->constant);
  Tensor panels = make_floats(packed_gemm_floats(region.n, region.k, panel), [&](float* to) {
    pack_gemm_weights(weights.data(), region.n, region.k, region.transposed ? region.k : region.n, region.transposed,
                      panel, config.depth, to);
  });
  if (config.weights != DType::f32) panels = write_floats(config.weights, panels.dims(), panels.data<float>());
  return finish_linear("linear", problem, region, tactic, std::move(panels), panel);
}

class Linear final : public CpuKernel {
 public:
  Linear(const Attrs& attrs, const GemmShape& shape, Isa isa)
      : binding_(attrs), kernel_(shape, read_epilogue(attrs), read_config(attrs), isa) {}
  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const ConvArgs args = binding_.args(bindings);
    kernel_.run(worker, workers, {args.src, args.weights, args.bias, args.residual, args.dst});
  }

 private:
  ConvBinding binding_;
  GemmKernel kernel_;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  check_linear(attrs, shapes);
  const GemmConfig config = read_config(attrs);
  HONE_CHECK(config.weights != DType::f16 || has_half_loads(info.isa),
             "a linear layer in the plan keeps its weights in f16, which this processor cannot widen");
  const GemmShape shape = gemm_shape(shapes.outputs[0].dims, attrs.integer("k"));
  const int64_t panel = config.panel_channels(info.isa);
  require_constant(shapes, 0, config.weights,
                   Dims{static_cast<int64_t>(packed_bias_floats(shape.n, 1, panel)), shape.k});
  require_bias(attrs, shapes, shape.n, 1, panel);
  return std::make_shared<Linear>(attrs, shape, info.isa);
}

}  // namespace

const CpuTactic tactics::linear = {"linear", propose, compile, load};

}  // namespace hone::cpu
