// SPDX-License-Identifier: Apache-2.0
//
// Attention in one pass over the keys on tensor cores: a warp holds 16 queries in registers. Either a block of WARPS warps shares
// tiles of 64 keys and values in shared memory, and where two fit, the next is on its way while one is worked on; or (SPLIT_KEYS,
// for few queries) its warps hold the same queries, share the keys in tiles of 32, and add up at the end. Scores, their maximum and their sum are f32; weights are rounded to T for the second
// matmul, as the matmuls' operands are. Before this stand T and MMA_TYPE ("f16" or "bf16"), Result and ROUND, DEPTH and VALUE_DEPTH
// (multiples of 16), WARPS, BLOCKS of them that an SM has to hold, SPLIT_KEYS, the parameters and HAS_MASK with the mask's type M.
//
// Fragments of mma.m16n8k16: thread (g, t) = (lane / 4, lane % 4) holds rows g and g + 8, columns 2t, 2t + 1 and, of the first
// operand, those 8 further. A result's fragment pair of neighbouring column tiles is a first operand's fragment as it stands.

#define KEYS (SPLIT_KEYS ? 32 : 64)
#define PITCH(depth) ((depth) + 8)   // elements per row in shared memory: neighbouring rows in other banks
#define STAGES (SPLIT_KEYS || DEPTH + VALUE_DEPTH > 176 ? 1 : 2)   // what every GPU's 48 KB hold
#define TILES (SPLIT_KEYS ? WARPS : STAGES)
#define LOADERS (SPLIT_KEYS ? 32 : WARPS * 32)   // threads that load a tile

static inline void multiply(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
static inline void load_matrices(unsigned* to, const T* row) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at));
}
static inline void load_transposed(unsigned* to, const T* row) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at));
}
static inline unsigned pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn." MMA_TYPE "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Two neighbours of a row.
static inline void store_pair(T* to, float low, float high) { *reinterpret_cast<unsigned*>(to) = pack(ROUND(low), ROUND(high)); }
template <typename Code> static inline void store_pair(Code* to, float low, float high) {
  *reinterpret_cast<Vector<Code, 2>*>(to) = {convert<Code>(ROUND(low)), convert<Code>(ROUND(high))};
}

// KEYS rows of `depth` elements, 16 bytes a time; rows behind the last key are zero.
template <int depth> static inline void load_tile(T* tile, const T* from, i64 row_step, int start, int keys) {
  constexpr int kChunks = depth / 8;
  for (int at = threadIdx.x % LOADERS; at < KEYS * kChunks; at += LOADERS) {
    const int row = at / kChunks, column = at % kChunks * 8;
    const bool there = start + row < keys;
    const unsigned to = (unsigned)__cvta_generic_to_shared(tile + row * PITCH(depth) + column);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(there ? from + (start + row) * row_step + column : from), "r"(there ? 16 : 0));
  }
}

constexpr float kDigits = 1.4426950f;  // binary, of a power of e

// A tile is for its warp alone, or for the block.
static inline void meet() {
  if (SPLIT_KEYS) __syncwarp();
  else __syncthreads();
}

extern "C" __global__ void __launch_bounds__(WARPS * 32, BLOCKS) attention(ATTENTION_PARAMETERS) {
  await_operands();
  constexpr int kKeyTile = KEYS * PITCH(DEPTH), kValueTile = KEYS * PITCH(VALUE_DEPTH);
  __shared__ alignas(16) T tiles[TILES * (kKeyTile + kValueTile)];
  const auto key_tile = [&](int tile) { return tiles + tile * (kKeyTile + kValueTile); };
  const auto value_tile = [&](int tile) { return key_tile(tile) + kKeyTile; };
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int batch = blockIdx.z, head = blockIdx.y, key_head = head / (a.heads / a.key_heads);
  const int first = (SPLIT_KEYS ? blockIdx.x : blockIdx.x * WARPS + warp) * 16;
  const bool works = first < a.queries;  // or it fetches for the others
  q += batch * a.q_batch + head * a.q_head;
  k += batch * a.k_batch + key_head * a.k_head;
  v += batch * a.v_batch + key_head * a.v_head;
  out += batch * a.o_batch + head * a.o_head;

  const auto load_tiles = [&](int tile, int start) {
    load_tile<DEPTH>(key_tile(tile), k, a.k_row, start, a.keys);
    load_tile<VALUE_DEPTH>(value_tile(tile), v, a.v_row, start, a.keys);
  };
  constexpr int kTurn = SPLIT_KEYS ? WARPS * KEYS : KEYS;
  const int begin = SPLIT_KEYS ? warp * KEYS : 0;
  load_tiles(SPLIT_KEYS ? warp : 0, begin);
  asm volatile("cp.async.commit_group;");

  unsigned queries[DEPTH / 16][4];
#pragma unroll
  for (int d = 0; d < DEPTH / 16; ++d)
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int row = first + g + part % 2 * 8, column = d * 16 + 2 * t + part / 2 * 8;
      queries[d][part] = row < a.queries ? *reinterpret_cast<const unsigned*>(q + row * a.q_row + column) : 0u;
    }

  const bool in_pairs = HAS_MASK && a.m_column == 1 && (a.m_row | a.m_head | a.m_batch) % 2 == 0;
  mask += batch * a.m_batch + head * a.m_head;
  const int m_column = (int)a.m_column, m_row = (int)a.m_row, last = a.queries - 1;   // rows behind the last are read as the last
  const int mask_rows[2] = {(first + g < last ? first + g : last) * m_row, (first + g + 8 < last ? first + g + 8 : last) * m_row};
  float top[2] = {-INFINITY_F, -INFINITY_F}, total[2] = {}, result[VALUE_DEPTH / 8][4] = {};
  for (int start = begin, stage = 0; start < a.keys; start += kTurn, stage = (stage + 1) % STAGES) {
    if (STAGES > 1 && start + KEYS < a.keys) load_tiles((stage + 1) % STAGES, start + KEYS);
    asm volatile("cp.async.commit_group;");
    const bool whole = start + KEYS <= a.keys;
    // What is added to the scores comes while the tiles do; two neighbours at once where they lie in one word.
    Vector<M, 2> added[HAS_MASK ? KEYS / 8 : 1][2];
    if (HAS_MASK && whole && in_pairs) {
#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half) added[n][half] = *reinterpret_cast<const Vector<M, 2>*>(mask + (mask_rows[half] + start + n * 8 + 2 * t));
    } else if (HAS_MASK) {
#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = start + n * 8 + 2 * t + i % 2;
          M& each = added[n][i / 2].at[i % 2];
          each = {};
          if (column < a.keys) each = mask[mask_rows[i / 2] + column * m_column];
        }
    }
    asm volatile("cp.async.wait_group %0;" : : "n"(STAGES - 1));
    meet();
    const T *keys = key_tile(SPLIT_KEYS ? warp : stage), *values = value_tile(SPLIT_KEYS ? warp : stage);
    // `all`: whether the tile has KEYS keys.
    const auto work = [&](auto all) {
      const int there = (a.keys - start + 15) / 16;  // of 16 keys each
      float score[KEYS / 8][4] = {};                                             // 16 queries x 64 keys
#pragma unroll
      for (int d = 0; d < DEPTH / 16; ++d)
#pragma unroll
        for (int n = 0; n < KEYS / 16; ++n) {
          if (!all.value && n >= there) continue;
          unsigned b[4];
          load_matrices(b, keys + (n * 16 + lane / 16 * 8 + lane % 8) * PITCH(DEPTH) + d * 16 + lane / 8 % 2 * 8);
          multiply(score[2 * n], queries[d], b[0], b[1]);
          multiply(score[2 * n + 1], queries[d], b[2], b[3]);
        }

#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) score[n][i] = score[n][i] * a.scale + (HAS_MASK ? convert<float>(added[HAS_MASK ? n : 0][i / 2].at[i % 2]) : 0.0f);
      if (!all.value)
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            if (start + n * 8 + 2 * t + i % 2 >= a.keys) score[n][i] = -INFINITY_F;
      float best[2] = {top[0], top[1]};
#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) best[i / 2] = fmaxf(best[i / 2], score[n][i]);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        best[r] = fmaxf(best[r], __shfl_xor_sync(0xffffffffu, best[r], 1));
        best[r] = fmaxf(best[r], __shfl_xor_sync(0xffffffffu, best[r], 2));
        // A row of nothing but minus infinity so far has no maximum yet.
        const float base = best[r] == -INFINITY_F ? 0.0f : kDigits * best[r], shrink = fast_exp2(kDigits * top[r] - base);
        total[r] *= shrink;
        top[r] = best[r];
        best[r] = base;
#pragma unroll
        for (int n = 0; n < VALUE_DEPTH / 8; ++n) result[n][2 * r] *= shrink, result[n][2 * r + 1] *= shrink;
      }
#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (!all.value && n / 2 >= there) continue;
          score[n][i] = fast_exp2(kDigits * score[n][i] - best[i / 2]);
          total[i / 2] += score[n][i];
        }

#pragma unroll
      for (int n = 0; n < KEYS / 16; ++n) {                                      // 16 keys a time
        if (!all.value && n >= there) continue;
        const unsigned weights[4] = {pack(score[2 * n][0], score[2 * n][1]), pack(score[2 * n][2], score[2 * n][3]), pack(score[2 * n + 1][0], score[2 * n + 1][1]),
                                     pack(score[2 * n + 1][2], score[2 * n + 1][3])};
#pragma unroll
        for (int d = 0; d < VALUE_DEPTH / 16; ++d) {
          unsigned b[4];
          load_transposed(b, values + (n * 16 + lane % 16) * PITCH(VALUE_DEPTH) + d * 16 + lane / 16 * 8);
          multiply(result[2 * d], weights, b[0], b[1]);
          multiply(result[2 * d + 1], weights, b[2], b[3]);
        }
      }
    };
    if (works && whole) work(Known<true>());
    else if (works) work(Known<false>());
    meet();
    if (STAGES == 1 && start + kTurn < a.keys) load_tiles(SPLIT_KEYS ? warp : 0, start + kTurn);
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    total[r] += __shfl_xor_sync(0xffffffffu, total[r], 1);
    total[r] += __shfl_xor_sync(0xffffffffu, total[r], 2);
  }
#if SPLIT_KEYS
  // Each warp's results on the scale of the largest maximum, added up in the memory of the tiles.
  __shared__ float tops[WARPS][16], totals[WARPS][16];
  float* const parts = reinterpret_cast<float*>(tiles);
  static_assert(WARPS * 16 * VALUE_DEPTH * sizeof(float) <= sizeof(tiles), "the parts take the place of the tiles");
  asm volatile("cp.async.wait_all;");
  if (t == 0)
#pragma unroll
    for (int r = 0; r < 2; ++r) tops[warp][g + r * 8] = top[r], totals[warp][g + r * 8] = total[r];
  __syncthreads();
  const auto highest = [&](int row) {
    float best = tops[0][row];
#pragma unroll
    for (int w = 1; w < WARPS; ++w) best = fmaxf(best, tops[w][row]);
    return best == -INFINITY_F ? 0.0f : best;
  };
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = g + r * 8;
    const float scale = fast_exp2(kDigits * (top[r] - highest(row)));
#pragma unroll
    for (int n = 0; n < VALUE_DEPTH / 8; ++n)
      *reinterpret_cast<float2*>(parts + (warp * 16 + row) * VALUE_DEPTH + n * 8 + 2 * t) = make_float2(result[n][2 * r] * scale, result[n][2 * r + 1] * scale);
  }
  __syncthreads();
  for (int pair = threadIdx.x; pair < 16 * VALUE_DEPTH / 2; pair += WARPS * 32) {
    const int row = pair / (VALUE_DEPTH / 2), column = pair % (VALUE_DEPTH / 2) * 2;
    if (first + row >= a.queries) continue;
    const float base = highest(row);
    float sum = 0, low = 0, high = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      sum += totals[w][row] * fast_exp2(kDigits * (tops[w][row] - base));
      const float2 part = *reinterpret_cast<const float2*>(parts + (w * 16 + row) * VALUE_DEPTH + column);
      low += part.x;
      high += part.y;
    }
    store_pair(out + (first + row) * a.o_row + column, low / sum, high / sum);
  }
#else
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first + g + r * 8;
    if (row >= a.queries) continue;
    const float factor = 1.0f / total[r];
#pragma unroll
    for (int n = 0; n < VALUE_DEPTH / 8; ++n)
      store_pair(out + row * a.o_row + n * 8 + 2 * t, result[n][2 * r] * factor, result[n][2 * r + 1] * factor);
  }
#endif
}
