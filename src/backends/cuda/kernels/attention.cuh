// SPDX-License-Identifier: Apache-2.0
//
// Attention in one pass over the keys: a block holds a tile of queries, walks tiles of keys, and keeps a running maximum and sum
// per query, so that the matrix of scores never exists in memory. Plain arithmetic in f32. Before this stand T, DEPTH (of queries
// and keys, a multiple of 4), VALUE_DEPTH (a multiple of 16) and HAS_MASK with the mask's type M.
//
// 128 threads, 32 queries, 32 keys a turn. For the scores thread (i, j) holds queries 2i, 2i+1 and keys 4j .. 4j+3; for the result
// the same queries and every eighth column of the values.

#define QUERIES 32
#define KEYS 32

struct Attention {
  int queries, keys, heads, key_heads;
  i64 q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row;
  i64 m_batch, m_head, m_row, m_column;
  float scale;
};

extern "C" __global__ void __launch_bounds__(128) attention(const T* q, const T* k, const T* v, const M* mask, T* out, const Attention a) {
  await_operands();
  __shared__ float queries[QUERIES][DEPTH + 1];
  __shared__ float keys[KEYS][DEPTH + 1];
  __shared__ float values[KEYS][VALUE_DEPTH];
  __shared__ float weights[QUERIES][KEYS + 1];
  const int batch = blockIdx.z, head = blockIdx.y, first = blockIdx.x * QUERIES, key_head = head / (a.heads / a.key_heads);
  const int i = threadIdx.x / 8, j = threadIdx.x % 8;
  q += batch * a.q_batch + head * a.q_head;
  k += batch * a.k_batch + key_head * a.k_head;
  v += batch * a.v_batch + key_head * a.v_head;
  out += batch * a.o_batch + head * a.o_head;
  for (int at = threadIdx.x; at < QUERIES * DEPTH; at += 128) {
    const int row = at / DEPTH, column = at % DEPTH;
    queries[row][column] = first + row < a.queries ? as_float(q[(first + row) * a.q_row + column]) * a.scale : 0.0f;
  }
  float top[2] = {-INFINITY_F, -INFINITY_F}, total[2] = {}, result[2][VALUE_DEPTH / 8] = {};
  for (int start = 0; start < a.keys; start += KEYS) {
    __syncthreads();
    for (int at = threadIdx.x; at < KEYS * DEPTH; at += 128) {
      const int row = at / DEPTH, column = at % DEPTH;
      keys[row][column] = start + row < a.keys ? as_float(k[(start + row) * a.k_row + column]) : 0.0f;
    }
    for (int at = threadIdx.x; at < KEYS * VALUE_DEPTH; at += 128) {
      const int row = at / VALUE_DEPTH, column = at % VALUE_DEPTH;
      values[row][column] = start + row < a.keys ? as_float(v[(start + row) * a.v_row + column]) : 0.0f;
    }
    __syncthreads();
    float score[2][4] = {};
    for (int d = 0; d < DEPTH; ++d) {
      const float x0 = queries[2 * i][d], x1 = queries[2 * i + 1][d];
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float y = keys[j + 8 * n][d];
        score[0][n] += x0 * y;
        score[1][n] += x1 * y;
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = first + 2 * i + r;
      float best = top[r];
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int column = start + j + 8 * n;
        if (column >= a.keys) score[r][n] = -INFINITY_F;
        else if (HAS_MASK && row < a.queries) score[r][n] += convert<float>(mask[batch * a.m_batch + head * a.m_head + row * a.m_row + column * a.m_column]);
        best = fmaxf(best, score[r][n]);
      }
      for (int step = 4; step > 0; step /= 2) best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, step));
      // A row of nothing but minus infinity so far has no maximum yet.
      const float base = best == -INFINITY_F ? 0.0f : best, shrink = expf(top[r] - base);
      float sum = 0;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float weight = expf(score[r][n] - base);
        weights[2 * i + r][j + 8 * n] = weight;
        sum += weight;
      }
      for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      total[r] = total[r] * shrink + sum;
      top[r] = best;
#pragma unroll
      for (int n = 0; n < VALUE_DEPTH / 8; ++n) result[r][n] *= shrink;
    }
    __syncwarp();
    for (int key = 0; key < KEYS; ++key) {
      const float w0 = weights[2 * i][key], w1 = weights[2 * i + 1][key];
#pragma unroll
      for (int n = 0; n < VALUE_DEPTH / 8; ++n) {
        const float y = values[key][j + 8 * n];
        result[0][n] += w0 * y;
        result[1][n] += w1 * y;
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first + 2 * i + r;
    if (row >= a.queries) continue;
    const float factor = 1.0f / total[r];
#pragma unroll
    for (int n = 0; n < VALUE_DEPTH / 8; ++n) out[row * a.o_row + j + 8 * n] = convert<T>(result[r][n] * factor);
  }
}
