// SPDX-License-Identifier: Apache-2.0
//
// Softmax or LogSoftmax; a row's elements are `inner` apart. A row per block, or per thread where rows are short and begin side by
// side. Before this stand T, Result, LOG, ROUND and the parameters.

extern "C" __global__ void softmax(SOFTMAX_PARAMETERS) {
  await_operands();
  __shared__ float scratch[32];
  const i64 row = blockIdx.x, base = row / inner * n * inner + row % inner;
  float top = -INFINITY_F;
  for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, as_float(x[base + (i64)i * inner]));
  top = block_max(top, scratch);
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(as_float(x[base + (i64)i * inner]) - top);
  __syncthreads();
  sum = block_sum(sum, scratch);
  const float factor = LOG ? logf(sum) : 1.0f / sum;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float shifted = as_float(x[base + (i64)i * inner]) - top;
    y[base + (i64)i * inner] = convert<Result>(ROUND(LOG ? shifted - factor : expf(shifted) * factor));
  }
}

extern "C" __global__ void softmax_by_thread(SOFTMAX_BY_THREAD_PARAMETERS) {
  await_operands();
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const i64 base = (i64)(row / inner) * n * inner + row % inner;
  float top = -INFINITY_F;
  for (int i = 0; i < n; ++i) top = fmaxf(top, as_float(x[base + (i64)i * inner]));
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += expf(as_float(x[base + (i64)i * inner]) - top);
  const float factor = LOG ? logf(sum) : 1.0f / sum;
  for (int i = 0; i < n; ++i) {
    const float shifted = as_float(x[base + (i64)i * inner]) - top;
    y[base + (i64)i * inner] = convert<Result>(ROUND(LOG ? shifted - factor : expf(shifted) * factor));
  }
}
