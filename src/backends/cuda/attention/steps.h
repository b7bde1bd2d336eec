// SPDX-License-Identifier: Apache-2.0
//
// What every attention kernel is told of its operands: sizes, and steps in elements.
#pragma once

#include <cstdint>
#include <string_view>

#include "regions/attention_region.h"

namespace hone::cuda {

struct Attention {
  static constexpr std::string_view kName = "Attention";
  int32_t queries = 0, keys = 0, heads = 0, key_heads = 0;
  int64_t q_batch = 0, q_head = 0, q_row = 0, k_batch = 0, k_head = 0, k_row = 0;
  int64_t v_batch = 0, v_head = 0, v_row = 0, o_batch = 0, o_head = 0, o_row = 0;
  int64_t m_batch = 0, m_head = 0, m_row = 0, m_column = 0;
  float scale = 1;
  static void fields(auto& self, auto& visit) {
    visit("queries", self.queries);
    visit("keys", self.keys);
    visit("heads", self.heads);
    visit("key_heads", self.key_heads);
    visit("q_batch", self.q_batch);
    visit("q_head", self.q_head);
    visit("q_row", self.q_row);
    visit("k_batch", self.k_batch);
    visit("k_head", self.k_head);
    visit("k_row", self.k_row);
    visit("v_batch", self.v_batch);
    visit("v_head", self.v_head);
    visit("v_row", self.v_row);
    visit("o_batch", self.o_batch);
    visit("o_head", self.o_head);
    visit("o_row", self.o_row);
    visit("m_batch", self.m_batch);
    visit("m_head", self.m_head);
    visit("m_row", self.m_row);
    visit("m_column", self.m_column);
    visit("scale", self.scale);
  }
};

Attention attention_of(const AttentionSizes& sizes, double scale);

/// Why kernels for such operands (all of one float type, a depth that is known, a mask of floats) do not take the attention of a region;
/// empty when they do.
std::string operands_refusal(const Problem& problem, const Node& node);

}  // namespace hone::cuda
