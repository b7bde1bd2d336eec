// SPDX-License-Identifier: Apache-2.0
//
// The tactic of fused attention whose products may be rounded to bf16. tile_attention_kernel.h does the work.
#include "backends/cpu/attention/tile_attention_kernel.h"

#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cpu {
namespace {

constexpr int64_t kKeys[] = {256, 512};  // scores of 32 and 64 KB

void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
  const Node* node = anchor_of(problem.region, ops::scaled_dot_product_attention);
  if (node == nullptr || !problem.allowed.bf16) return;
  std::string reason = reason_against_attention(problem, *node);
  if (reason.empty() && !has_matrix_tiles(info.isa)) reason = "the processor has no matrix tiles of bf16 (AMX)";
  if (!reason.empty()) return out.refuse("tile_attention", std::move(reason));
  for (const int64_t keys : kKeys)
    out.offer({"cpu",
               "tile_attention",
               {{"keys", keys}},
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               {Layout::linear}});
}

class TileAttention final : public CpuKernel {
 public:
  TileAttention(const AttentionCode& code, int64_t keys, const CpuInfo& info)
      : code_(code),
        workers_(info.workers),
        kernel_({code.q, code.k, code.v, code.y, mask_strides(code), code.scale}, keys) {}

  size_t workspace_bytes() const override { return kernel_.scratch_bytes() * static_cast<size_t>(workers_); }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const size_t floats = kernel_.scratch_bytes() / sizeof(float) * static_cast<size_t>(worker);
    kernel_.run(worker, workers, attention_args(code_, bindings, static_cast<float*>(bindings.workspace) + floats));
  }

 private:
  AttentionCode code_;
  int workers_;
  TileAttentionKernel kernel_;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  HONE_CHECK(has_matrix_tiles(info.isa),
             "attention in the plan multiplies matrix tiles of bf16 (AMX), which this processor does not have");
  return std::make_shared<TileAttention>(AttentionCode(attrs, shapes), bounded(attrs, "keys", 1, 1 << 20), info);
}

}  // namespace

const CpuTactic tactics::tile_attention = {"tile_attention", propose, compile_attention, load};

}  // namespace hone::cpu
