// SPDX-License-Identifier: Apache-2.0
//
// Attention in one pass over the keys on tensor cores: a warp holds 16 queries in registers, a block of WARPS warps shares tiles
// of 64 keys and values in shared memory. Scores, their maximum and their sum are f32; weights are rounded to T for the second
// product, as the products' operands are. Before this stand T and MMA_TYPE ("f16" or "bf16"), DEPTH and VALUE_DEPTH (multiples of
// 16), WARPS and HAS_MASK with the mask's type M.
//
// Fragments of mma.m16n8k16: thread (g, t) = (lane / 4, lane % 4) holds rows g and g + 8, columns 2t, 2t + 1 and, of the first
// operand, those 8 further. A result's fragment pair of neighbouring column tiles is a first operand's fragment as it stands.

#define KEYS 64
#define PITCH(depth) ((depth) + 8)   // elements per row in shared memory: neighbouring rows in other banks

struct Attention {
  int queries, keys, heads, key_heads;
  i64 q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row;
  i64 m_batch, m_head, m_row, m_column;
  float scale;
};

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
  return (unsigned)convert<T>(low).bits | (unsigned)convert<T>(high).bits << 16;
}

// KEYS rows of `depth` elements, 16 bytes a time; rows behind the last key are zero.
template <int depth> static inline void load_tile(T* tile, const T* from, i64 row_step, int start, int keys) {
  constexpr int kChunks = depth / 8;
  for (int at = threadIdx.x; at < KEYS * kChunks; at += WARPS * 32) {
    const int row = at / kChunks, column = at % kChunks * 8;
    uint4 value = {0, 0, 0, 0};
    if (start + row < keys) value = *reinterpret_cast<const uint4*>(from + (start + row) * row_step + column);
    *reinterpret_cast<uint4*>(tile + row * PITCH(depth) + column) = value;
  }
}

extern "C" __global__ void __launch_bounds__(WARPS * 32) attention(const T* q, const T* k, const T* v, const M* mask, T* out, const Attention a) {
  __shared__ alignas(16) T keys[KEYS * PITCH(DEPTH)];
  __shared__ alignas(16) T values[KEYS * PITCH(VALUE_DEPTH)];
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int batch = blockIdx.z, head = blockIdx.y, key_head = head / (a.heads / a.key_heads);
  const int first = (blockIdx.x * WARPS + threadIdx.x / 32) * 16;
  q += batch * a.q_batch + head * a.q_head;
  k += batch * a.k_batch + key_head * a.k_head;
  v += batch * a.v_batch + key_head * a.v_head;
  out += batch * a.o_batch + head * a.o_head;

  unsigned queries[DEPTH / 16][4];
#pragma unroll
  for (int d = 0; d < DEPTH / 16; ++d)
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int row = first + g + part % 2 * 8, column = d * 16 + 2 * t + part / 2 * 8;
      queries[d][part] = row < a.queries ? *reinterpret_cast<const unsigned*>(q + row * a.q_row + column) : 0u;
    }

  float top[2] = {-INFINITY_F, -INFINITY_F}, total[2] = {}, result[VALUE_DEPTH / 8][4] = {};
  for (int start = 0; start < a.keys; start += KEYS) {
    __syncthreads();
    load_tile<DEPTH>(keys, k, a.k_row, start, a.keys);
    load_tile<VALUE_DEPTH>(values, v, a.v_row, start, a.keys);
    __syncthreads();

    float score[KEYS / 8][4] = {};                                             // 16 queries x 64 keys
#pragma unroll
    for (int d = 0; d < DEPTH / 16; ++d)
#pragma unroll
      for (int n = 0; n < KEYS / 16; ++n) {
        unsigned b[4];
        load_matrices(b, keys + (n * 16 + lane / 16 * 8 + lane % 8) * PITCH(DEPTH) + d * 16 + lane / 8 % 2 * 8);
        multiply(score[2 * n], queries[d], b[0], b[1]);
        multiply(score[2 * n + 1], queries[d], b[2], b[3]);
      }

    float best[2] = {top[0], top[1]};
#pragma unroll
    for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = first + g + i / 2 * 8, column = start + n * 8 + 2 * t + i % 2;
        float value = score[n][i] * a.scale;
        if (column >= a.keys) value = -INFINITY_F;
        else if (HAS_MASK && row < a.queries) value += convert<float>(mask[batch * a.m_batch + head * a.m_head + row * a.m_row + column * a.m_column]);
        score[n][i] = value;
        best[i / 2] = fmaxf(best[i / 2], value);
      }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      best[r] = fmaxf(best[r], __shfl_xor_sync(0xffffffffu, best[r], 1));
      best[r] = fmaxf(best[r], __shfl_xor_sync(0xffffffffu, best[r], 2));
      // A row of nothing but minus infinity so far has no maximum yet.
      const float base = best[r] == -INFINITY_F ? 0.0f : best[r], shrink = __expf(top[r] - base);
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
        score[n][i] = __expf(score[n][i] - best[i / 2]);
        total[i / 2] += score[n][i];
      }

#pragma unroll
    for (int n = 0; n < KEYS / 16; ++n) {                                      // 16 keys a time
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
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    total[r] += __shfl_xor_sync(0xffffffffu, total[r], 1);
    total[r] += __shfl_xor_sync(0xffffffffu, total[r], 2);
    const int row = first + g + r * 8;
    if (row >= a.queries) continue;
    const float factor = 1.0f / total[r];
#pragma unroll
    for (int n = 0; n < VALUE_DEPTH / 8; ++n)
      *reinterpret_cast<unsigned*>(out + row * a.o_row + n * 8 + 2 * t) = pack(result[n][2 * r] * factor, result[n][2 * r + 1] * factor);
  }
}
