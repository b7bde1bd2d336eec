// SPDX-License-Identifier: Apache-2.0
//
// Attention in one pass over the keys: a block holds a tile of queries, walks tiles of keys, and keeps a running maximum and sum
// per query, so that the matrix of scores never exists in memory. Plain arithmetic in f32. Before this stand T, Result and
// ROUND, DEPTH of queries and keys, VALUE_DEPTH, HAS_MASK with the mask's type M, QUERIES of a block (a multiple of 16), KEYS of a turn
// (of 8) and the parameters.
//
// 128 threads. For the scores thread (i, j) holds ROWS queries from ROWS * i on and every eighth key from j on; for the result the
// same queries and every eighth column of the values.

#define ROWS (QUERIES / 16)
#define COLUMNS ((VALUE_DEPTH + 7) / 8)

extern "C" __global__ void __launch_bounds__(128) attention(ATTENTION_PARAMETERS) {
  await_operands();
  __shared__ float queries[QUERIES][DEPTH + 1];
  __shared__ float keys[KEYS][DEPTH + 1];
  __shared__ float values[KEYS][COLUMNS * 8];
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
  float top[ROWS], total[ROWS] = {}, result[ROWS][COLUMNS] = {};
#pragma unroll
  for (int r = 0; r < ROWS; ++r) top[r] = -INFINITY_F;
  for (int start = 0; start < a.keys; start += KEYS) {
    __syncthreads();
    for (int at = threadIdx.x; at < KEYS * DEPTH; at += 128) {
      const int row = at / DEPTH, column = at % DEPTH;
      keys[row][column] = start + row < a.keys ? as_float(k[(start + row) * a.k_row + column]) : 0.0f;
    }
    for (int at = threadIdx.x; at < KEYS * COLUMNS * 8; at += 128) {
      const int row = at / (COLUMNS * 8), column = at % (COLUMNS * 8);
      values[row][column] = start + row < a.keys && column < VALUE_DEPTH ? as_float(v[(start + row) * a.v_row + column]) : 0.0f;
    }
    __syncthreads();
    float score[ROWS][KEYS / 8] = {};
    for (int d = 0; d < DEPTH; ++d)
#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n) {
        const float y = keys[j + 8 * n][d];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) score[r][n] += queries[ROWS * i + r][d] * y;
      }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const int row = first + ROWS * i + r;
      float best = top[r];
#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n) {
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
      for (int n = 0; n < KEYS / 8; ++n) {
        const float weight = expf(score[r][n] - base);
        weights[ROWS * i + r][j + 8 * n] = weight;
        sum += weight;
      }
      for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      total[r] = total[r] * shrink + sum;
      top[r] = best;
#pragma unroll
      for (int n = 0; n < COLUMNS; ++n) result[r][n] *= shrink;
    }
    __syncwarp();
    for (int key = 0; key < KEYS; ++key)
#pragma unroll
      for (int n = 0; n < COLUMNS; ++n) {
        const float y = values[key][j + 8 * n];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) result[r][n] += weights[ROWS * i + r][key] * y;
      }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const int row = first + ROWS * i + r;
    if (row >= a.queries) continue;
    const float factor = 1.0f / total[r];
#pragma unroll
    for (int n = 0; n < COLUMNS; ++n)
      if (j + 8 * n < VALUE_DEPTH) out[row * a.o_row + j + 8 * n] = convert<Result>(ROUND(result[r][n] * factor));
  }
}
