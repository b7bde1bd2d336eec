// SPDX-License-Identifier: Apache-2.0
//
// What the families of fused attention share: a region's code, and the block of scores that a tactic chose.
#pragma once

#include "backends/cpu/family.h"
#include "regions/attention_region.h"

namespace hone::cpu {

template <typename Block>
struct BlockedAttention {
  AttentionCode attention;
  Block block;
  static void fields(auto& self, auto& visit) {
    AttentionCode::fields(self.attention, visit);
    Block::fields(self.block, visit);
  }
};

template <typename Block>
struct AttentionFamilyOf {
  static constexpr int kVersion = 1;
  using Params = Block;
  using Code = BlockedAttention<Block>;

  static Built<Code> compile(const Problem& problem, const Params& block, const Tactic&) {
    AttentionRegion region = *read_attention_region(problem);
    return {{std::move(region.code), block}, std::move(region.constants)};
  }
  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&, const CpuInfo&) {
    return operand_constants(code.attention.operands);
  }

 protected:
  static void offer(std::string_view name, const Problem& problem, std::span<const Block> blocks, Candidates& out) {
    const std::vector<Layout> in(problem.region.inputs().size(), Layout::linear), result(1, Layout::linear);
    for (const Block& block : blocks) out.offer({"cpu", std::string(name), write_fields(block), in, result});
  }
};

}  // namespace hone::cpu
