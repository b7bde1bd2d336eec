// SPDX-License-Identifier: Apache-2.0
//
// A mean and a variance over a row, then scale and shift. Rows of a fixed length that is not too long stay in registers, of a few
// neighbouring lanes or of a block; elsewhere a block reads a row again. Before this stand T, Result, CENTRED, ROUND, the parameters
// and, for the former, ROW (a row's length), V (elements taken at once), LANES (threads of a row: all of one warp, or all of a block),
// CONSTANT_SCALE, SUMMED (a row is the sum of two) and KEEPS_WHOLE (it is stored before it becomes codes, too). Element i of row r takes scale number r % groups * step + i / inner.

#ifdef ROW
#define TURNS ((ROW / V + LANES - 1) / LANES)

static inline float lanes_sum(float value, float* scratch) {
#if LANES > 32
  return block_sum(value, scratch);
#else
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
#endif
}

// The row is read once; scale and bias have an element per element of the row.
extern "C" __global__ void normalization_row(NORMALIZATION_ROW_PARAMETERS) {
  __shared__ float scratch[32];
  typedef Vector<T, V> Part;
  const int lane = threadIdx.x % LANES;
  const i64 row = (i64)blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
  const bool inside = row < count;
  Part factors[TURNS], shifts[TURNS], parts[TURNS] = {};
  bool there[TURNS];
#pragma unroll
  for (int turn = 0; turn < TURNS; ++turn) {
    const int at = lane + turn * LANES;
    there[turn] = inside && at < ROW / V;
    if (there[turn] && CONSTANT_SCALE && scale != nullptr) factors[turn] = reinterpret_cast<const Part*>(scale)[at];
    if (there[turn] && CONSTANT_SCALE && bias != nullptr) shifts[turn] = reinterpret_cast<const Part*>(bias)[at];
  }
  await_operands();
#pragma unroll
  for (int turn = 0; turn < TURNS; ++turn)
    if (there[turn]) parts[turn] = reinterpret_cast<const Part*>(x + row * ROW)[lane + turn * LANES];
#if SUMMED
#pragma unroll
  for (int turn = 0; turn < TURNS; ++turn) {
    if (!there[turn]) continue;
    const Part other = reinterpret_cast<const Part*>(added + row * ROW)[lane + turn * LANES];
#pragma unroll
    for (int i = 0; i < V; ++i) parts[turn].at[i] = convert<T>(as_float(parts[turn].at[i]) + as_float(other.at[i]));
    if (sum != nullptr) reinterpret_cast<Part*>(sum + row * ROW)[lane + turn * LANES] = parts[turn];
  }
#endif
  float values[TURNS][V], mean = 0;
#pragma unroll
  for (int turn = 0; turn < TURNS; ++turn)
#pragma unroll
    for (int i = 0; i < V; ++i) {
      values[turn][i] = as_float(parts[turn].at[i]);
      mean += values[turn][i];
    }
  mean = CENTRED ? lanes_sum(mean, scratch) / ROW : 0;
  float power = 0;
#pragma unroll
  for (int turn = 0; turn < TURNS; ++turn)
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float d = values[turn][i] - mean;
      power += there[turn] ? d * d : 0;
    }
  const float inverse = rsqrtf(lanes_sum(power, scratch) / ROW + epsilon);
#pragma unroll
  for (int turn = 0; turn < TURNS; ++turn) {
    if (!there[turn]) continue;
    const int at = lane + turn * LANES;
    if (!CONSTANT_SCALE && scale != nullptr) factors[turn] = reinterpret_cast<const Part*>(scale)[at];
    if (!CONSTANT_SCALE && bias != nullptr) shifts[turn] = reinterpret_cast<const Part*>(bias)[at];
    Vector<Result, V> result;
    Part kept;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float factor = scale == nullptr ? 1.0f : as_float(factors[turn].at[i]),
                  shift = bias == nullptr ? 0.0f : as_float(shifts[turn].at[i]),
                  normal = (values[turn][i] - mean) * inverse * factor + shift;
      kept.at[i] = convert<T>(normal);
      result.at[i] = convert<Result>(ROUND(normal));
    }
    if (KEEPS_WHOLE) reinterpret_cast<Part*>(whole + row * ROW)[at] = kept;
    reinterpret_cast<Vector<Result, V>*>(y + row * ROW)[at] = result;
  }
}
#endif

extern "C" __global__ void normalization(NORMALIZATION_PARAMETERS) {
  await_operands();
  __shared__ float scratch[32];
  const T* row = x + (i64)blockIdx.x * n;
  Result* result = y + (i64)blockIdx.x * n;
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
    const float factor = scale == nullptr ? 1.0f : as_float(scale[at]),
                shift = bias == nullptr ? 0.0f : as_float(bias[at]);
    result[i] = convert<Result>(ROUND((as_float(row[i]) - mean) * inverse * factor + shift));
  }
}
