// SPDX-License-Identifier: Apache-2.0
//
// A region of two Concats and the attention that reads them: the keys and values of a cache with those of new tokens behind them,
// which are results as well where they are kept for the next token.
#pragma once

#include "regions/attention_region.h"

namespace hone {

struct CachedAttentionCode {
  enum Operand : size_t { kQueries, kPastKeys, kNewKeys, kPastValues, kNewValues, kMask };
  std::vector<OperandCode> operands;  // in the order above; the mask where there is one
  float scale = 1;                    // of the scores
  int64_t keys = -1, values = -1;     // results that keep them, or -1
  static void fields(auto& self, auto& visit) {
    visit("operand", self.operands, 6);
    visit("scale", self.scale);
    visit("keys", self.keys, -1, 2);
    visit("values", self.values, -1, 2);
  }
};

struct CachedAttentionRegion {
  const Node* node = nullptr;  // the attention
  CachedAttentionCode code;
  std::vector<Tensor> constants = {};  // operands that are constant
  std::string refusal = {};            // empty where kernels of its operands' type take it
};

/// Which of the results is the attention's own, where these keep keys and values (-1: nothing does).
size_t attention_result(int64_t keys, int64_t values);

/// Sizes of what is in a cache and what comes behind it. Throws Error where they do not fit together.
Dims joined_tokens(const Dims& past, const Dims& fresh);

/// Nothing where the region is something else.
std::optional<CachedAttentionRegion> read_cached_attention(const Problem& problem);

/// A step of it, all of f32 and heads first. Throws Error where its operands do not exist or do not fit together.
struct CachedAttentionLayer : AttentionSizes {
  CachedAttentionLayer(const CachedAttentionCode& code, const KernelShapes& shapes);

  CachedAttentionCode code;
  int64_t past = 0;   // tokens in the cache
  size_t result = 0;  // of the attention, among the results
};

}  // namespace hone
