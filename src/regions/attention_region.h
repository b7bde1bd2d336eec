// SPDX-License-Identifier: Apache-2.0
//
// A region of one attention, softmax(scale q kT + mask) v, read once for all sources; what a kernel's code keeps of it, and the
// sizes and strides that follow when it is loaded.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "device/tactic.h"
#include "regions/operand_code.h"

namespace hone {

/// Of [B, H, S, D] and [B, S, H, D].
enum class HeadOrder { heads_first, tokens_first };
inline constexpr std::array<std::string_view, 2> kHeadOrderNames = {"bhsd", "bshd"};
constexpr const auto& field_names(HeadOrder) { return kHeadOrderNames; }

struct AttentionCode {
  std::vector<OperandCode> operands;  // queries, keys, values, and the mask where there is one
  float scale = 1;                    // of the scores
  HeadOrder order = HeadOrder::heads_first;
  static void fields(auto& self, auto& visit) {
    visit("operand", self.operands, 4);
    visit("scale", self.scale);
    visit("layout", self.order);
  }
};

struct AttentionRegion {
  const Node* node = nullptr;
  AttentionCode code;
  std::vector<Tensor> constants = {};  // the mask where it is constant
  std::string refusal = {};            // why kernels of f32 operands do not take it; empty when they do
};

/// Nothing when the region does not begin with attention.
std::optional<AttentionRegion> read_attention_region(const Problem& problem);

/// Sizes and strides (in elements) of an operand in either order.
struct HeadTensor {
  int64_t batch, heads, rows, columns, batch_stride, head_stride, row_stride;
  HeadTensor(const Dims& d, HeadOrder order);
  int64_t offset(int64_t b, int64_t h, int64_t row) const {
    return b * batch_stride + h * head_stride + row * row_stride;
  }
};

/// What is added to the scores: sizes in four axes, strides (in elements) of 0 where it is repeated.
struct AttentionMask {
  OperandCode operand;
  Dims dims, strides;
  int64_t offset(int64_t b, int64_t h, int64_t row) const { return b * strides[0] + h * strides[1] + row * strides[2]; }
};

/// The attention at concrete sizes. Throws Error where the operands do not fit together.
struct AttentionLayer {
  AttentionLayer(const AttentionCode& code, const KernelShapes& shapes);

  OperandCode q_operand, k_operand, v_operand;
  HeadTensor q, k, v, y;
  std::optional<AttentionMask> mask;
  float scale;

  int64_t queries_per_key() const { return q.heads / k.heads; }
  /// Several query heads may share one of keys and values.
  int64_t shared_head(int64_t head) const { return head / queries_per_key(); }
};

}  // namespace hone
