// SPDX-License-Identifier: Apache-2.0
//
// A mean and a variance over a row, then scale and shift: a block per row of n contiguous elements. Before this stand T and
// CENTRED. Element i of row r takes scale number r % groups * step + i / inner.

extern "C" __global__ void normalization(const T* x, const T* scale, const T* bias, T* y, int n, int groups, int step, int inner, float epsilon) {
  __shared__ float scratch[32];
  const T* row = x + (i64)blockIdx.x * n;
  T* result = y + (i64)blockIdx.x * n;
  float mean = 0;
  if (CENTRED) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) mean += as_float(row[i]);
    mean = block_sum(mean, scratch) / n;
  }
  float power = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float d = as_float(row[i]) - mean;
    power += d * d;
  }
  __syncthreads();
  power = block_sum(power, scratch) / n;
  const float inverse = rsqrtf(power + epsilon);
  const int first = (int)(blockIdx.x % groups) * step;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const int at = first + i / inner;
    const float factor = scale == nullptr ? 1.0f : as_float(scale[at]), shift = bias == nullptr ? 0.0f : as_float(bias[at]);
    result[i] = convert<T>((as_float(row[i]) - mean) * inverse * factor + shift);
  }
}
