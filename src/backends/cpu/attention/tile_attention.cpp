// SPDX-License-Identifier: Apache-2.0
//
// The tactic of fused attention whose matmuls are of bf16: rounded, or parts of f32. tile_attention_kernel.h does the work.
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

constexpr int64_t kBlocks[] = {256, 512};  // scores of 32 and 64 KB

class TileAttention final : public CpuKernel {
 public:
  TileAttention(const AttentionLayer& layer, const KeyBlock& block, const CpuInfo& info)
      : layer_(layer), workers_(info.workers), kernel_(attention_shape(layer), block.keys, parts_of(block.operands)) {}

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
  static constexpr int kVersion = 3;

  static Cost cost(const Problem&, const Params& block, const Tactic&) {
    const int parts = parts_of(block.operands);
    return {.arithmetic = 0.8 + 0.2 * static_cast<double>(products_of(parts).size() - 1), .operands = 1.0 + parts};
  }
  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::optional<AttentionRegion> region = read_attention_region(problem);
    if (!region) return;
    if (!region->refusal.empty()) return out.refuse(kName, region->refusal);
    if (!has_matrix_tiles(info.isa)) return out.refuse(kName, "the processor has no matrix tiles of bf16 (AMX)");
    std::vector<KeyBlock> blocks;
    for (const TileOperand operands : allowed_operands(problem.allowed))
      for (const int64_t keys : kBlocks) blocks.push_back({keys, operands});
    offer(kName, problem, blocks, out);
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    HONE_CHECK(has_matrix_tiles(info.isa),
               "attention in the plan multiplies matrix tiles of bf16 (AMX), which this processor does not have");
    return std::make_shared<TileAttention>(AttentionLayer(code.attention, shapes), code.block, info);
  }
};

}  // namespace

const CpuTactic tactics::tile_attention = describe<TileAttentionFamily>();

}  // namespace hone::cpu
