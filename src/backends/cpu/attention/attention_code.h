// SPDX-License-Identifier: Apache-2.0
//
// Attention in a kernel's code: what all its kernels write at build time and read at load time.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/tactic_table.h"

namespace hone::cpu {

/// Why no kernel computes this attention; empty when there is no reason.
std::string reason_against_attention(const Problem& problem, const Node& node);
/// Places of the operands, scale and layout; a constant mask goes to the constants.
void write_attention(Attrs& attrs, const Problem& problem, const Node& node, std::vector<Tensor>& constants);

/// The same with the tactic's parameters, as the code of the kernel of the tactic's name.
Compiled compile_attention(const Problem& problem, const Tactic& tactic);

/// Sizes and strides (in elements) of a [B, H, S, D] operand in either layout.
struct HeadTensor {
  int64_t batch, heads, rows, columns, batch_stride, head_stride, row_stride;
  HeadTensor(const Dims& d, bool heads_first);
  int64_t offset(int64_t b, int64_t h, int64_t row) const {
    return b * batch_stride + h * head_stride + row * row_stride;
  }
};

/// What is added to the scores: sizes in four axes, strides (in elements) of 0 where it is repeated.
struct AttentionMask {
  int place = -1;  // -1: the kernel's constant
  Dims dims, strides;
  int64_t offset(int64_t b, int64_t h, int64_t row) const { return b * strides[0] + h * strides[1] + row * strides[2]; }
};

/// Throws Error where the operands do not fit together.
struct AttentionCode {
  AttentionCode(const Attrs& attrs, const KernelShapes& shapes);

  int q_place, k_place, v_place;
  HeadTensor q, k, v, y;
  std::optional<AttentionMask> mask;
  float scale;

  int64_t queries_per_key() const { return q.heads / k.heads; }
  /// Several query heads may share one of keys and values.
  int64_t shared_head(int64_t head) const { return head / queries_per_key(); }
};

}  // namespace hone::cpu
