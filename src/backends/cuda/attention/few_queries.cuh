// SPDX-License-Identifier: Apache-2.0
//
// Attention of few queries to many keys: BLOCKS blocks, a cluster where they are several, take a head of keys with up to ROWS of the
// queries that share it, and their warps the keys. Keys and values go from memory to registers once, for all of the rows, and on to the
// cache of the next token where that is kept. KEY_LANES lanes side by side hold a key, V elements each, so that a warp reads NEAR keys
// at a time, LOADS times before it computes. Every group of such lanes keeps a maximum and sums of its own; at the end they are brought
// to one maximum, those of a warp, of a block, of all. All sums are f32.
//
// Before this stand T, V elements of it in 16 bytes, DEPTH (KEY_LANES times V), HAS_MASK with the mask's type M, HAS_CACHE (keys lie in
// two parts, `past` of them in the first), KEEPS_KEYS, KEEPS_VALUES, ROWS, WARPS, LOADS, BLOCKS and the parameters.

#define KEY_LANES (DEPTH / V)
#define NEAR (32 / KEY_LANES)
#define TURN (LOADS * NEAR)  // keys of a warp

#if BLOCKS > 1
#define TOGETHER __cluster_dims__(BLOCKS, 1, 1)
#else
#define TOGETHER
#endif

typedef Vector<T, V> Part;

static inline void unpack(float* to, const Part& part) {
#pragma unroll
  for (int e = 0; e < V; ++e) to[e] = as_float(part.at[e]);
}

// What `parts` have summed up, each to a maximum of its own, of one row at one place.
struct Sums {
  float top, total, value;
};
template <int PARTS, typename Top, typename Total, typename Value>
static inline Sums merged(const Top& top, const Total& total, const Value& value) {
  Sums all = {top(0), 0, 0};
#pragma unroll
  for (int i = 1; i < PARTS; ++i) all.top = fmaxf(all.top, top(i));
  const float base = all.top == -INFINITY_F ? 0.0f : all.top;
#pragma unroll
  for (int i = 0; i < PARTS; ++i) {
    const float scale = __expf(top(i) - base);
    all.total += total(i) * scale;
    all.value += value(i) * scale;
  }
  return all;
}

extern "C" __global__ void TOGETHER __launch_bounds__(WARPS * 32) few_queries(FEW_QUERIES_PARAMETERS) {
  await_operands();
  __shared__ float tops[WARPS][ROWS], totals[WARPS][ROWS], parts[WARPS][ROWS][DEPTH];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, near = lane / KEY_LANES, column = lane % KEY_LANES * V;
  const int batch = blockIdx.z, key_head = blockIdx.y, first = blockIdx.x / BLOCKS * ROWS, rank = blockIdx.x % BLOCKS;
  const int shared = a.heads / a.key_heads, rows = shared * a.queries, fresh = a.keys - past;
  const i64 which = (i64)batch * a.key_heads + key_head;
  const auto head_of = [&](int row) { return key_head * shared + row / a.queries; };

  float queries[ROWS][V];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const int row = first + r < rows ? first + r : rows - 1;
    unpack(queries[r], *reinterpret_cast<const Part*>(q + batch * a.q_batch + head_of(row) * a.q_head + row % a.queries * a.q_row + column));
#pragma unroll
    for (int e = 0; e < V; ++e) queries[r][e] *= a.scale;
  }

  float top[ROWS], total[ROWS] = {}, result[ROWS][V] = {};
#pragma unroll
  for (int r = 0; r < ROWS; ++r) top[r] = -INFINITY_F;
  for (int start = (rank * WARPS + warp) * TURN; start < a.keys; start += BLOCKS * WARPS * TURN) {
    Part keys[LOADS] = {}, values[LOADS] = {};
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
      const int key = start + n * NEAR + near;
      if (key >= a.keys) continue;
#if HAS_CACHE
      const bool is_past = key < past;
      const i64 at = is_past ? (which * past + key) * DEPTH + column : (which * fresh + key - past) * DEPTH + column;
      keys[n] = *reinterpret_cast<const Part*>((is_past ? k : new_k) + at);
      values[n] = *reinterpret_cast<const Part*>((is_past ? v : new_v) + at);
#else
      keys[n] = *reinterpret_cast<const Part*>(k + batch * a.k_batch + key_head * a.k_head + key * a.k_row + column);
      values[n] = *reinterpret_cast<const Part*>(v + batch * a.v_batch + key_head * a.v_head + key * a.v_row + column);
#endif
    }
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
      const int key = start + n * NEAR + near;
      if (key >= a.keys || first != 0) continue;
      if (KEEPS_KEYS) *reinterpret_cast<Part*>(kept_k + (which * a.keys + key) * DEPTH + column) = keys[n];
      if (KEEPS_VALUES) *reinterpret_cast<Part*>(kept_v + (which * a.keys + key) * DEPTH + column) = values[n];
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const int row = first + r < rows ? first + r : rows - 1;
      float score[LOADS], best = top[r];
#pragma unroll
      for (int n = 0; n < LOADS; ++n) {
        const int key = start + n * NEAR + near;
        float sum = 0;
#pragma unroll
        for (int e = 0; e < V; ++e) sum += queries[r][e] * as_float(keys[n].at[e]);
        for (int step = KEY_LANES / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (key >= a.keys) sum = -INFINITY_F;
        else if (HAS_MASK) sum += convert<float>(mask[batch * a.m_batch + head_of(row) * a.m_head + row % a.queries * a.m_row + key * a.m_column]);
        score[n] = sum;
        best = fmaxf(best, sum);
      }
      // A row of nothing but minus infinity so far has no maximum yet.
      const float base = best == -INFINITY_F ? 0.0f : best, shrink = __expf(top[r] - base);
      top[r] = best;
      total[r] *= shrink;
#pragma unroll
      for (int e = 0; e < V; ++e) result[r][e] *= shrink;
#pragma unroll
      for (int n = 0; n < LOADS; ++n) {
        const float weight = __expf(score[n] - base);
        total[r] += weight;
#pragma unroll
        for (int e = 0; e < V; ++e) result[r][e] += weight * as_float(values[n].at[e]);
      }
    }
  }

#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    float best = top[r];
    for (int step = KEY_LANES; step < 32; step *= 2) best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, step));
    const float scale = best == -INFINITY_F ? 0.0f : __expf(top[r] - best);
    total[r] *= scale;
    for (int step = KEY_LANES; step < 32; step *= 2) total[r] += __shfl_xor_sync(0xffffffffu, total[r], step);
#pragma unroll
    for (int e = 0; e < V; ++e) {
      result[r][e] *= scale;
      for (int step = KEY_LANES; step < 32; step *= 2) result[r][e] += __shfl_xor_sync(0xffffffffu, result[r][e], step);
      if (near == 0) parts[warp][r][column + e] = result[r][e];
    }
    if (lane == 0) tops[warp][r] = best, totals[warp][r] = total[r];
  }
  __syncthreads();
  const auto of_warps = [&](int r, int place) {
    return merged<WARPS>([&](int w) { return tops[w][r]; }, [&](int w) { return totals[w][r]; }, [&](int w) { return parts[w][r][place]; });
  };
  const auto write = [&](int row, int place, const Sums& sums) {
    out[batch * a.o_batch + head_of(row) * a.o_head + row % a.queries * a.o_row + place] = convert<T>(sums.value / sums.total);
  };
#if BLOCKS == 1
  for (int at = threadIdx.x; at < ROWS * DEPTH; at += WARPS * 32)
    if (first + at / DEPTH < rows) write(first + at / DEPTH, at % DEPTH, of_warps(at / DEPTH, at % DEPTH));
#else
  // Every block finishes its share of the places.
  __shared__ float block_tops[ROWS], block_totals[ROWS], block_values[ROWS * DEPTH];
  for (int at = threadIdx.x; at < ROWS * DEPTH; at += WARPS * 32) {
    const Sums sums = of_warps(at / DEPTH, at % DEPTH);
    block_values[at] = sums.value;
    if (at % DEPTH == 0) block_tops[at / DEPTH] = sums.top, block_totals[at / DEPTH] = sums.total;
  }
  meet_cluster();
  for (int at = rank * WARPS * 32 + threadIdx.x; at < ROWS * DEPTH; at += BLOCKS * WARPS * 32) {
    const int r = at / DEPTH;
    if (first + r >= rows) continue;
    write(first + r, at % DEPTH, merged<BLOCKS>([&](int b) { return of_block(block_tops + r, b); }, [&](int b) { return of_block(block_totals + r, b); },
                                                [&](int b) { return of_block(block_values + at, b); }));
  }
  meet_cluster();   // nobody leaves while its sums are read
#endif
}
