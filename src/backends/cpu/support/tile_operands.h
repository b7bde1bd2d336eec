// SPDX-License-Identifier: Apache-2.0
//
// What kernels of floats on matrix tiles multiply. Reports read it in the tactic: such a layer computes in bf16, whatever lies in memory.
#pragma once

#include <array>
#include <string_view>

namespace hone::cpu {

enum class TileOperand { bf16 };
inline constexpr std::array<std::string_view, 1> kTileOperandNames = {"bf16"};
constexpr const auto& field_names(TileOperand) { return kTileOperandNames; }

struct TileOperands {
  TileOperand operands = TileOperand::bf16;
  static void fields(auto& self, auto& visit) { visit("operands", self.operands); }
};

}  // namespace hone::cpu
