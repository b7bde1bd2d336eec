// SPDX-License-Identifier: Apache-2.0
//
// y[..., N] = epilogue(x[..., K] W + b): one matrix product, all leading axes are rows. Few rows take as long as the weights take
// to be read: where rounding is allowed they are kept in 16 bits, and everything is computed in f32.
#include <algorithm>
#include <cmath>

#include "backends/cpu/jit/gemm_kernel.h"
#include "backends/cpu/jit/pack.h"
#include "backends/cpu/jit/tile_code.h"
#include "backends/cpu/tactics/convolution.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone::cpu {
namespace {

constexpr int64_t kFewRows = 32;
constexpr float kLargestHalf = 65504;

struct LinearRegion {
  RegionMatch match;
  int input = -1;
  int64_t n = 0, k = 0;
  bool transposed = false;  // weights are [N, K]
};

std::string reason_against(const Problem& problem, const Node& node, const RegionMatch& match) {
  if (problem.device.architecture == "scalar") return "needs AVX2";
  const Value* x = node.input(0);
  if (x->type.dtype != DType::f32) return fmt::format("input is {}, not f32", name_of(x->type.dtype));
  if (input_index(problem.region, x) < 0) return "its input is a constant";
  if (!node.input(1)->is_constant() || (node.input(2) != nullptr && !node.input(2)->is_constant()))
    return "weights are not constant";
  if (node.output()->type.shape.elements() == Dim(0) || x->type.shape.elements() == Dim(0)) return "empty operands";
  return match.refusal;
}

LinearRegion collect(const Problem& problem, const Node& node, RegionMatch match) {
  const Dims& w = node.input(1)->constant->dims();
  const bool transposed = node.attrs.integer("trans_w") != 0;
  return {std::move(match), input_index(problem.region, node.input(0)), transposed ? w[0] : w[1],
          transposed ? w[1] : w[0], transposed};
}

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
  const Node* node = anchor_of(problem.region, ops::linear);
  if (node == nullptr) return;
  RegionMatch match = match_region(problem.region, node, 1);
  if (std::string reason = reason_against(problem, *node, match); !reason.empty())
    return out.refuse("linear", std::move(reason));
  const LinearRegion region = collect(problem, *node, std::move(match));
  const std::vector<Layout> in(problem.region.inputs().size(), Layout::linear);
  const GemmShape shape = gemm_shape(node->output()->type.shape.values(), region.k);
  for (const GemmConfig& config : candidates_for(problem, *node, shape, info)) {
    Attrs params;
    write_config(params, config);
    out.offer({"cpu", "linear", std::move(params), in, {Layout::linear}});
  }
}

Compiled compile(const Problem& problem, const Tactic& tactic) {
  const Node* node = anchor_of(problem.region, ops::linear);
  const LinearRegion region = collect(problem, *node, match_region(problem.region, node, 1));
  const Isa isa = cpu_info(problem.device).isa;
  const GemmConfig config = read_config(tactic.params);
  const int64_t panel = config.panel_channels(isa);

  Compiled compiled;
  const std::vector<float> weights = scaled_weights(region.match, *node->input(1)->constant);
  Tensor panels = make_floats(packed_gemm_floats(region.n, region.k, panel), [&](float* to) {
    pack_gemm_weights(weights.data(), region.n, region.k, region.transposed ? region.k : region.n, region.transposed,
                      panel, config.depth, to);
  });
  if (config.weights != DType::f32) panels = write_floats(config.weights, panels.dims(), panels.data<float>());
  compiled.constants.push_back(std::move(panels));
  const std::vector<float> bias = collect_bias(region.match, node->input(2), region.n);
  if (!bias.empty())
    compiled.constants.push_back(make_floats(packed_bias_floats(region.n, 1, panel), [&](float* packed) {
      pack_bias(bias.data(), region.n, 1, panel, packed);
    }));

  Attrs attrs = tactic.params;
  attrs.set("input", int64_t{region.input});
  attrs.set("n", region.n);
  attrs.set("k", region.k);
  attrs.set("isa", std::string(to_string(isa)));
  write_epilogue(attrs, region.match, !bias.empty());
  compiled.code = encode_code("linear", attrs);
  return compiled;
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
  check_binding(attrs, shapes);
  const Dims& input = shapes.inputs[static_cast<size_t>(attrs.integer("input"))].dims;
  const Dims& output = shapes.outputs[0].dims;
  const int64_t k = bounded(attrs, "k", 1, 1 << 28), n = bounded(attrs, "n", 1, 1 << 28);
  const bool valid = !input.empty() && !output.empty() && input.back() == k && output.back() == n &&
                     elements(input) / k == elements(output) / n;
  HONE_CHECK(valid, "a linear layer in the plan takes {} to {}", join_dims(input), join_dims(output));
  HONE_CHECK(read_config(attrs).weights != DType::f16 || has_half_loads(info.isa),
             "a linear layer in the plan keeps its weights in f16, which this processor cannot widen");
  return std::make_shared<Linear>(attrs, gemm_shape(output, k), info.isa);
}

}  // namespace

const CpuTactic tactics::linear = {"linear", propose, compile, load};

}  // namespace hone::cpu
