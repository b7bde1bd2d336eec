// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/attention/steps.h"

#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {

Attention attention_of(const AttentionSizes& sizes, double scale) {
  const auto& [q, k, v, y, mask] = sizes;
  Attention a{.queries = static_cast<int32_t>(q.rows),
              .keys = static_cast<int32_t>(k.rows),
              .heads = static_cast<int32_t>(q.heads),
              .key_heads = static_cast<int32_t>(k.heads),
              .scale = static_cast<float>(scale)};
  a.q_batch = q.batch_stride, a.q_head = q.head_stride, a.q_row = q.row_stride;
  a.k_batch = k.batch_stride, a.k_head = k.head_stride, a.k_row = k.row_stride;
  a.v_batch = v.batch_stride, a.v_head = v.head_stride, a.v_row = v.row_stride;
  a.o_batch = y.batch_stride, a.o_head = y.head_stride, a.o_row = y.row_stride;
  if (!mask) return a;
  a.m_batch = mask->strides[0], a.m_head = mask->strides[1];
  a.m_row = mask->strides[2], a.m_column = mask->strides[3];
  return a;
}

std::string operands_refusal(const Problem& problem, const Node& node) {
  for (size_t i = 0; i < 3; ++i) {
    const DType dtype = node.input(i)->type.dtype;
    if (!is_kernel_float(dtype) || dtype != node.input(0)->type.dtype)
      return fmt::format("operand is {}", name_of(dtype));
  }
  for (const Node* symbolic : problem.symbolic.nodes())
    for (size_t i = 0; i < 3 && symbolic->is(ops::scaled_dot_product_attention); ++i)
      if (!symbolic->input(i)->type.shape[3].is_constant()) return "the depth is not fixed";
  if (node.input(3) != nullptr && !is_kernel_float(node.input(3)->type.dtype)) return "the mask is no float";
  return {};
}

}  // namespace hone::cuda
