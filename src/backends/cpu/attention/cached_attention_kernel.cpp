// SPDX-License-Identifier: Apache-2.0
//
// A few queries at a time pass all keys block by block, with a running softmax; the first of them brings the blocks into the
// first-level cache and keeps them.
#include "backends/cpu/attention/cached_attention_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention/cached_attention_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "backends/cpu/support/exp-inl.h"
#include "backends/cpu/support/lanes-inl.h"
#include "backends/cpu/support/targets.h"

#ifndef HONE_CACHED_ATTENTION_SIZES
#define HONE_CACHED_ATTENTION_SIZES
namespace hone::cpu {
namespace {
constexpr int64_t kBlock = 32;        // keys
constexpr int64_t kMostTogether = 4;  // queries
constexpr int64_t kWidth = 16;        // floats that rows of the scratch are rounded up to
int64_t padded(int64_t floats) { return (floats + kWidth - 1) / kWidth * kWidth; }
}  // namespace
}  // namespace hone::cpu
#endif

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

constexpr int64_t kTogether =
    HWY_MAX_BYTES >= 64 ? kMostTogether : 2;                     // accumulators of four keys each fit the registers
constexpr int kQuad = 4;                                         // keys whose sums become lanes of one block
constexpr int kChunk = 4;                                        // vectors of a value
constexpr int64_t kReadAhead = 16 << 10, kWriteAhead = 2 << 10;  // bytes

/// Rows of a block, prefetched for reading and for writing.
HWY_INLINE void keep(const float* from, float* to, int64_t floats) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kLine = 16;
  int64_t i = 0;
  for (; i + kLine <= floats; i += kLine) {
    const auto* source = reinterpret_cast<const char*>(from + i) + kReadAhead;
    const char* target = reinterpret_cast<const char*>(to + i) + kWriteAhead;
    asm volatile("prefetcht1 %0" ::"m"(*source));
    asm volatile("prefetchw %0" ::"m"(*target));
    for (int64_t part = 0; part < kLine; part += lanes) hn::StoreU(hn::LoadU(d, from + i + part), d, to + i + part);
  }
  std::copy(from + i, from + floats, to + i);
}

template <typename Part, typename Sums>
HWY_INLINE void store_sum_of_blocks(Part d, Sums v, float* to) {
  if constexpr (hn::MaxLanes(Part()) > kQuad) {
    const hn::Half<Part> half;
    store_sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), to);
  } else {
    hn::StoreU(v, d, to);
  }
}

/// The sums of all lanes of four vectors.
HWY_INLINE void store_sums(const V (&v)[kQuad], float* to) {
  const D d;
  const hn::Repartition<double, D> pairs;
  const auto two = [&](V a, V b) HWY_ATTR {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto first = two(v[0], v[1]), second = two(v[2], v[3]);
  const V lower = hn::BitCast(d, hn::InterleaveLower(pairs, first, second)),
          upper = hn::BitCast(d, hn::InterleaveUpper(pairs, first, second));
  store_sum_of_blocks(d, hn::Add(lower, upper), to);
}

/// The queries that pass the keys together; `kRows` of them.
struct Pass {
  const float* q = nullptr;  // rows of padded(depth)
  float* sums = nullptr;     // of weighted values, rows of padded(value depth)
  float top[kMostTogether], total[kMostTogether];
  const float* mask[kMostTogether];
  HWY_ALIGN float scores[kMostTogether][kBlock];
};

template <int kRows>
HWY_INLINE void score(Pass& pass, const float* keys, int64_t count, int64_t depth) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t key = 0; key < count; key += kQuad) {
    const float* row[kQuad];
#pragma GCC unroll 4
    for (int64_t i = 0; i < kQuad; ++i) row[i] = keys + std::min(key + i, count - 1) * depth;
    V sums[kRows][kQuad];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < kQuad; ++i) sums[r][i] = hn::Zero(d);
    const auto step = [&](int64_t at, const auto& get) HWY_ATTR {
      V part[kQuad];
#pragma GCC unroll 4
      for (int i = 0; i < kQuad; ++i) part[i] = get(row[i] + at);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const V query = hn::LoadU(d, pass.q + r * padded(depth) + at);
#pragma GCC unroll 4
        for (int i = 0; i < kQuad; ++i) sums[r][i] = hn::MulAdd(query, part[i], sums[r][i]);
      }
    };
    int64_t at = 0;
    for (; at + lanes <= depth; at += lanes) step(at, [&](const float* from) HWY_ATTR { return hn::LoadU(d, from); });
    if (at < depth)
      step(at, [&](const float* from) HWY_ATTR { return load_some(d, from, static_cast<size_t>(depth - at), 0); });
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) store_sums(sums[r], pass.scores[r] + key);
  }
}

/// Scores become weights; what older values are multiplied by.
HWY_INLINE float weigh(Pass& pass, int64_t r, int64_t key, int64_t count, const CachedAttentionArgs& args) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  const V nothing = hn::Set(d, -std::numeric_limits<float>::infinity()), scale = hn::Set(d, args.scale);
  float* scores = pass.scores[r];
  const float* mask = pass.mask[r];
  for (int64_t i = count; i < std::min(kBlock, (count + lanes - 1) / lanes * lanes); ++i) scores[i] = 0;
  V most = nothing;
  for (int64_t i = 0; i < count; i += lanes) {
    const int64_t left = std::min(lanes, count - i);
    V value = hn::Mul(hn::Load(d, scores + i), scale);
    if (mask != nullptr && args.mask_key == 0) value = hn::Add(value, hn::Set(d, *mask));
    else if (mask != nullptr)
      value = hn::Add(value, left == lanes ? hn::LoadU(d, mask + key + i)
                                           : load_some(d, mask + key + i, static_cast<size_t>(left), 0));
    if (left < lanes) value = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(left)), value, nothing);
    hn::Store(value, d, scores + i);
    most = hn::Max(most, value);
  }
  const float before = pass.top[r], top = std::max(before, hn::GetLane(hn::MaxOfLanes(d, most)));
  // While every key was excluded: weights of 0.
  const V from = hn::Set(d, std::max(top, kLowest));
  V total = hn::Zero(d);
  for (int64_t i = 0; i < count; i += lanes) {
    const V weight = exp_below_zero(d, hn::Sub(hn::Load(d, scores + i), from));
    hn::Store(weight, d, scores + i);
    total = hn::Add(total, weight);
  }
  const float factor = top == before ? 1 : hn::GetLane(exp_below_zero(d, hn::Sub(hn::Set(d, before), from)));
  pass.top[r] = top;
  pass.total[r] = pass.total[r] * factor + hn::GetLane(hn::SumOfLanes(d, total));
  return factor;
}

/// Columns [at, at + vectors) of the values, times their weights; `count` columns of the last vector are there.
template <int kRows, int kVectors>
HWY_INLINE void add_values(Pass& pass, const float* values, int64_t keys, int64_t depth, int64_t at, int64_t count,
                           const float (&factors)[kMostTogether]) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kRows][kVectors];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = hn::Mul(hn::LoadU(d, pass.sums + r * padded(depth) + at + v * lanes), hn::Set(d, factors[r]));
  for (int64_t key = 0; key < keys; ++key) {
    const float* row = values + key * depth + at;
    V part[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      part[v] = kVectors == 1 && count < lanes ? load_some(d, row, static_cast<size_t>(count), 0)
                                               : hn::LoadU(d, row + v * lanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const V weight = hn::Set(d, pass.scores[r][key]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(weight, part[v], sums[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, pass.sums + r * padded(depth) + at + v * lanes);
}

template <int kRows>
HWY_INLINE void attend(Pass& pass, const CachedAttentionArgs& args, const float* keys, const float* values, int64_t key,
                       int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  score<kRows>(pass, keys, count, args.depth);
  float factors[kMostTogether];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) factors[r] = weigh(pass, r, key, count, args);
  const int64_t depth = args.value_depth;
  int64_t at = 0;
  for (; at + kChunk * lanes <= depth; at += kChunk * lanes)
    add_values<kRows, kChunk>(pass, values, count, depth, at, lanes, factors);
  for (; at < depth; at += lanes)
    add_values<kRows, 1>(pass, values, count, depth, at, std::min(lanes, depth - at), factors);
}

template <int kRows>
HWY_INLINE void pass_all(const CachedAttentionArgs& args, int64_t first) {
  const auto head = [&](int64_t r) { return (first + r) / args.queries; };
  const auto query = [&](int64_t r) { return (first + r) % args.queries; };
  Pass pass;
  float* queries = args.scratch;
  pass.q = queries;
  pass.sums = queries + kMostTogether * padded(args.depth);
  std::fill_n(args.scratch, cached_attention_scratch(args.depth, args.value_depth), 0.0F);
  for (int64_t r = 0; r < kRows; ++r) {
    std::copy_n(args.q + head(r) * args.q_head + query(r) * args.q_row, args.depth, queries + r * padded(args.depth));
    pass.top[r] = -std::numeric_limits<float>::infinity();
    pass.total[r] = 0;
    pass.mask[r] = args.mask == nullptr ? nullptr : args.mask + head(r) * args.mask_head + query(r) * args.mask_row;
  }
  int64_t key = 0;
  for (size_t part = 0; part < args.keys.size(); ++part) {
    const CachedRows &keys = args.keys[part], &values = args.values[part];
    for (int64_t row = 0; row < keys.rows; row += kBlock) {
      const int64_t count = std::min(kBlock, keys.rows - row), k = row * args.depth, v = row * args.value_depth;
      if (first == 0 && keys.to != nullptr) keep(keys.from + k, keys.to + k, count * args.depth);
      if (first == 0 && values.to != nullptr) keep(values.from + v, values.to + v, count * args.value_depth);
      attend<kRows>(pass, args, keys.from + k, values.from + v, key + row, count);
    }
    key += keys.rows;
  }
  for (int64_t r = 0; r < kRows; ++r) {
    float* y = args.y + head(r) * args.y_head + query(r) * args.y_row;
    const float* sums = pass.sums + r * padded(args.value_depth);
    for (int64_t i = 0; i < args.value_depth; ++i) y[i] = sums[i] / pass.total[r];
  }
}

void AttendToCache(const CachedAttentionArgs& args) {
  const int64_t rows = args.heads * args.queries;
  for (int64_t first = 0; first < rows;) {
    const int64_t left = std::min(kTogether, rows - first);
    if constexpr (kTogether == kMostTogether) {
      if (left == 4) pass_all<4>(args, first);
      if (left == 3) pass_all<3>(args, first);
    }
    if (left == 2) pass_all<2>(args, first);
    if (left == 1) pass_all<1>(args, first);
    first += left;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(AttendToCache);

CachedAttentionKernel cached_attention_kernel(Isa isa) { return HWY_DISPATCH_TABLE(AttendToCache)[target_index(isa)]; }

int64_t cached_attention_scratch(int64_t depth, int64_t value_depth) {
  return kMostTogether * (padded(depth) + padded(value_depth));
}

}  // namespace hone::cpu
#endif
