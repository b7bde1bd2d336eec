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
  double scale = 1;                    // of the scores, as the model says it
  std::vector<Tensor> constants = {};  // operands that are constant
  std::string refusal = {};            // why kernels of f32 operands do not take it; empty when they do

  int64_t key_depth() const { return node->input(0)->type.shape[3].value(); }
  int64_t value_depth() const { return node->input(2)->type.shape[3].value(); }
  const Value* mask() const { return node->input(3); }  // null where there is none
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
  AttentionMask(const Dims& given, const Dims& scores);
  Dims dims, strides;
  int64_t offset(int64_t b, int64_t h, int64_t row) const { return b * strides[0] + h * strides[1] + row * strides[2]; }
};

/// The operands and the result at concrete sizes. Throws Error where they do not fit together.
struct AttentionSizes {
  struct Operands {
    Dims q, k, v, y;
    std::optional<Dims> mask = {};
  };
  AttentionSizes(const Operands& dims, HeadOrder order);

  HeadTensor q, k, v, y;
  std::optional<AttentionMask> mask;

  int64_t queries_per_key() const { return q.heads / k.heads; }
  /// Several query heads may share one of keys and values.
  int64_t shared_head(int64_t head) const { return head / queries_per_key(); }
};

/// The attention of a step, all of f32. Throws Error where its operands do not exist or do not fit together.
struct AttentionLayer : AttentionSizes {
  AttentionLayer(const AttentionCode& code, const KernelShapes& shapes);

  OperandCode q_operand, k_operand, v_operand, mask_operand;  // the last where there is a mask
  float scale;
};

}  // namespace hone
