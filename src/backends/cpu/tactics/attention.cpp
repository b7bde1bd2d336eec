// SPDX-License-Identifier: Apache-2.0
//
// The tactic of fused attention in f32: what it takes, and how a plan describes it. attention_kernel.h does the work.
#include "backends/cpu/tactics/attention_kernel.h"
#include "backends/cpu/tactics/convolution.h"
#include "ops/ops.h"

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

MaskStrides mask_strides(const AttentionCode& code) {
  if (!code.mask) return {};
  const Dims& strides = code.mask->strides;
  const bool full = code.mask->dims[3] == code.k.rows;
  return {strides[0], strides[1], strides[2], full ? MaskKind::full : MaskKind::per_row};
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
    const auto input = [&](int i) { return static_cast<const float*>(bindings.inputs[static_cast<size_t>(i)]); };
    AttentionArgs args{
        .q = input(code_.q_place),
        .k = input(code_.k_place),
        .v = input(code_.v_place),
        .y = static_cast<float*>(bindings.outputs[0]),
        .scratch = static_cast<float*>(bindings.workspace) + static_cast<size_t>(worker) * kernel_.scratch_floats()};
    if (code_.mask)
      args.mask = code_.mask->place >= 0 ? input(code_.mask->place) : static_cast<const float*>(bindings.constants[0]);
    kernel_.run(worker, workers, args);
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
