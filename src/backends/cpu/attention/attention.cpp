// SPDX-License-Identifier: Apache-2.0
//
// The tactic of fused attention in f32: what it takes, and how a plan describes it. attention_kernel.h does the work.
#include "backends/cpu/attention/attention_kernel.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cpu {
namespace {

constexpr AttentionBlock kBlocks[] = {{96, 256}, {48, 128}};  // scores of 96 KB, and of 24 KB for small caches

std::string reason_against(const Problem& problem, const Node& node) {
  if (problem.device.architecture == "scalar") return "needs AVX2";
  return reason_against_attention(problem, node);
}

void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
  const Node* node = anchor_of(problem.region, ops::scaled_dot_product_attention);
  if (node == nullptr) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("attention", std::move(reason));
  for (const auto& [rows, keys] : kBlocks)
    out.offer({"cpu",
               "attention",
               {{"rows", rows}, {"keys", keys}},
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               {Layout::linear}});
}

class Attention final : public CpuKernel {
 public:
  Attention(const AttentionCode& code, const AttentionBlock& block, const CpuInfo& info)
      : code_(code),
        workers_(info.workers),
        kernel_({code.q, code.k, code.v, code.y, mask_strides(code), code.scale}, block, info.isa, info.workers) {}

  size_t workspace_bytes() const override {
    return kernel_.scratch_floats() * sizeof(float) * static_cast<size_t>(workers_);
  }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const size_t floats = kernel_.scratch_floats() * static_cast<size_t>(worker);
    kernel_.run(worker, workers, attention_args(code_, bindings, static_cast<float*>(bindings.workspace) + floats));
  }

 private:
  AttentionCode code_;
  int workers_;
  AttentionKernel kernel_;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  const AttentionBlock block{bounded(attrs, "rows", 1, 1024), bounded(attrs, "keys", 1, 1 << 20)};
  return std::make_shared<Attention>(AttentionCode(attrs, shapes), block, info);
}

}  // namespace

const CpuTactic tactics::attention = {"attention", propose, compile_attention, load};

}  // namespace hone::cpu
