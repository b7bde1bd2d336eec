// SPDX-License-Identifier: Apache-2.0
//
// The tactic of fused attention in f32: what it takes, and how a plan describes it. attention_kernel.h does the work.
#include "backends/cpu/attention/attention_family.h"
#include "backends/cpu/attention/attention_kernel.h"

namespace hone::cpu {
namespace {

constexpr AttentionBlock kBlocks[] = {{96, 256}, {48, 128}};  // scores of 96 KB, and of 24 KB for small caches

class Attention final : public CpuKernel {
 public:
  Attention(const AttentionLayer& layer, const AttentionBlock& block, const CpuInfo& info)
      : layer_(layer), workers_(info.workers), kernel_(attention_shape(layer), block, info.isa, info.workers) {}

  size_t workspace_bytes() const override {
    return kernel_.scratch_floats() * sizeof(float) * static_cast<size_t>(workers_);
  }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const size_t floats = kernel_.scratch_floats() * static_cast<size_t>(worker);
    kernel_.run(worker, workers, attention_args(layer_, bindings, static_cast<float*>(bindings.workspace) + floats));
  }

 private:
  AttentionLayer layer_;
  int workers_;
  AttentionKernel kernel_;
};

struct AttentionFamily : AttentionFamilyOf<AttentionBlock> {
  static constexpr std::string_view kName = "attention";
  static constexpr Cost kCost = {.arithmetic = 3.5, .operands = 4};

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const std::optional<AttentionRegion> region = read_attention_region(problem);
    if (!region) return;
    if (problem.device.architecture == "scalar") return out.refuse(kName, "needs AVX2");
    if (!region->refusal.empty()) return out.refuse(kName, region->refusal);
    offer(kName, problem, kBlocks, out);
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    return std::make_shared<Attention>(AttentionLayer(code.attention, shapes), code.block, info);
  }
};

}  // namespace

const CpuTactic tactics::attention = describe<AttentionFamily>();

}  // namespace hone::cpu
