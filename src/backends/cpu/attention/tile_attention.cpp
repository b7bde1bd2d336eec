// SPDX-License-Identifier: Apache-2.0
//
// The tactic of fused attention whose matmuls may be rounded to bf16. tile_attention_kernel.h does the work.
#include "backends/cpu/attention/attention_family.h"
#include "backends/cpu/attention/tile_attention_kernel.h"
#include "backends/cpu/support/tile_operands.h"

namespace hone::cpu {
namespace {

/// Keys whose scores are computed together.
struct KeyBlock {
  int64_t keys = 1;
  TileOperand operands = TileOperand::bf16;
  static void fields(auto& self, auto& visit) {
    visit("keys", self.keys, 1, 1 << 20);
    visit("operands", self.operands);
  }
};

constexpr KeyBlock kBlocks[] = {{256}, {512}};  // scores of 32 and 64 KB

class TileAttention final : public CpuKernel {
 public:
  TileAttention(const AttentionLayer& layer, int64_t keys, const CpuInfo& info)
      : layer_(layer), workers_(info.workers), kernel_(attention_shape(layer), keys) {}

  size_t workspace_bytes() const override { return kernel_.scratch_bytes() * static_cast<size_t>(workers_); }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const size_t floats = kernel_.scratch_bytes() / sizeof(float) * static_cast<size_t>(worker);
    kernel_.run(worker, workers, attention_args(layer_, bindings, static_cast<float*>(bindings.workspace) + floats));
  }

 private:
  AttentionLayer layer_;
  int workers_;
  TileAttentionKernel kernel_;
};

struct TileAttentionFamily : AttentionFamilyOf<KeyBlock> {
  static constexpr std::string_view kName = "tile_attention";
  static constexpr int kVersion = 2;
  static constexpr Cost kCost = {.arithmetic = 0.8, .operands = 2};

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::optional<AttentionRegion> region = read_attention_region(problem);
    if (!region || !problem.allowed.bf16) return;
    if (!region->refusal.empty()) return out.refuse(kName, region->refusal);
    if (!has_matrix_tiles(info.isa)) return out.refuse(kName, "the processor has no matrix tiles of bf16 (AMX)");
    offer(kName, problem, kBlocks, out);
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    HONE_CHECK(has_matrix_tiles(info.isa),
               "attention in the plan multiplies matrix tiles of bf16 (AMX), which this processor does not have");
    return std::make_shared<TileAttention>(AttentionLayer(code.attention, shapes), code.block.keys, info);
  }
};

}  // namespace

const CpuTactic tactics::tile_attention = describe<TileAttentionFamily>();

}  // namespace hone::cpu
