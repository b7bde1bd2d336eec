// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale q kT + mask) v of few queries and a cache, for the queries that share one head of keys and values. Memory is what it
// waits for: keys and values are read once, and stored behind each other as they pass. Compiled for every instruction set.
#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

/// Rows one behind the other, and where they are kept (null: nowhere).
struct CachedRows {
  const float* from = nullptr;
  float* to = nullptr;
  int64_t rows = 0;
};

struct CachedAttentionArgs {
  const float* q = nullptr;
  int64_t heads = 1, queries = 1;          // of queries, a row of q, mask and y each
  int64_t q_head = 0, q_row = 0;           // elements from head to head, and from row to row
  std::array<CachedRows, 2> keys, values;  // of the cache, and behind it
  int64_t depth = 1, value_depth = 1;
  const float* mask = nullptr;  // null: none
  int64_t mask_head = 0, mask_row = 0, mask_key = 0;
  float* y = nullptr;
  int64_t y_head = 0, y_row = 0;
  float scale = 1;
  float* scratch = nullptr;  // cached_attention_scratch() floats
};

using CachedAttentionKernel = void (*)(const CachedAttentionArgs&);
CachedAttentionKernel cached_attention_kernel(Isa isa);
int64_t cached_attention_scratch(int64_t depth, int64_t value_depth);

}  // namespace hone::cpu
