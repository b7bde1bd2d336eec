// SPDX-License-Identifier: Apache-2.0
//
// What kernels of floats on matrix tiles multiply. Reports read it in the tactic: bf16 is what such a layer computes in, whatever lies in
// memory; bf16x2 and bf16x3 stand for f32.
//
// The idea of the latter: an f32 is the sum of two bf16, but for 2^-17 of it, or of three, but for 2^-25. Of the products of
// the parts those count that are larger than what was left out: three of four, six of nine.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "device/tactic.h"

namespace hone::cpu {

enum class TileOperand { bf16, bf16x2, bf16x3 };
inline constexpr std::array<std::string_view, 3> kTileOperandNames = {"bf16", "bf16x2", "bf16x3"};
constexpr const auto& field_names(TileOperand) { return kTileOperandNames; }

struct TileOperands {
  TileOperand operands = TileOperand::bf16;
  static void fields(auto& self, auto& visit) { visit("operands", self.operands); }
};

/// What may stand for f32: rounded to bf16, or in two parts as TF32 might, or in three.
inline std::span<const TileOperand> allowed_operands(const Precision& allowed) {
  using enum TileOperand;
  static constexpr TileOperand kRounded[] = {bf16}, kParts[] = {bf16x2, bf16x3}, kExact[] = {bf16x3};
  if (allowed.bf16) return kRounded;
  return allowed.tf32 ? std::span<const TileOperand>(kParts) : kExact;
}

/// How many bf16 an element is cut into.
constexpr int parts_of(TileOperand operand) { return static_cast<int>(operand) + 1; }

/// Part `left` of one operand times part `right` of the other; 0 is the largest part.
struct PartProduct {
  int left, right;
};

inline constexpr PartProduct kOneProduct[] = {{0, 0}}, kThreeProducts[] = {{1, 0}, {0, 0}, {0, 1}},
                             kSixProducts[] = {{2, 0}, {1, 0}, {0, 0}, {0, 1}, {1, 1}, {0, 2}};
/// The products that count, each with an operand of the one before, as far as that goes.
constexpr std::span<const PartProduct> products_of(int parts) {
  if (parts == 1) return kOneProduct;
  return parts == 2 ? std::span<const PartProduct>(kThreeProducts) : kSixProducts;
}

}  // namespace hone::cpu
