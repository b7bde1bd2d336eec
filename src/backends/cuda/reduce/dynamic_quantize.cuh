// SPDX-License-Identifier: Apache-2.0
//
// DynamicQuantizeLinear, as codes with their scale and zero point, or as the floats that these stand for: all elements and 0 lie
// within 255 steps. Tensors that a few blocks read in no time are work for one cluster, whose blocks tell each other their limits;
// of larger ones a kernel of its own finds limits by block.
//
// Before this stand T, V, CODES, BLOCKS (of the cluster), TURNS (vectors of a thread there), the parameters and nearest_step.

#if CODES
typedef unsigned char Result;
#else
typedef T Result;
#endif

struct Limits {
  float low, high;
};

static inline void widen(Limits& limits, const Vector<T, V>& part) {
#pragma unroll
  for (int k = 0; k < V; ++k) {
    limits.low = fminf(limits.low, as_float(part.at[k]));
    limits.high = fmaxf(limits.high, as_float(part.at[k]));
  }
}

// Elements behind the last whole vector are those of the first threads.
static inline void widen_by_rest(Limits& limits, const T* x, i64 count, i64 first) {
  if (first >= count % V) return;
  const float last = as_float(x[count / V * V + first]);
  limits.low = fminf(limits.low, last);
  limits.high = fmaxf(limits.high, last);
}

static inline Limits block_limits(Limits own, float* scratch) {
  const float low = -block_max(-own.low, scratch);
  return {low, block_max(own.high, scratch)};
}

// The scale and the zero point that limits give, and what becomes of elements.
struct Codes {
  float scale, reciprocal, zero;
  explicit Codes(Limits limits) {
    scale = (limits.high - limits.low) / 255.0f;
    reciprocal = 1.0f / scale;
    zero = scale == 0 ? 0.0f : fminf(fmaxf(rintf(-limits.low / scale), 0.0f), 255.0f);
  }
  Result of(T element) const {
    const float x = as_float(element), code = scale == 0 || x != x ? 0.0f : fminf(fmaxf(nearest_step(x, scale, reciprocal, 255.0f) + zero, 0.0f), 255.0f);
#if CODES
    return (unsigned char)code;
#else
    return convert<T>((code - zero) * scale);
#endif
  }
  Vector<Result, V> of(const Vector<T, V>& part) const {
    Vector<Result, V> results;
#pragma unroll
    for (int k = 0; k < V; ++k) results.at[k] = of(part.at[k]);
    return results;
  }
  // What there is once, and elements behind the last whole vector.
  void write_rest(const T* x, Result* y, float* scale_result, unsigned char* zero_result, i64 count, i64 first) const {
    if (first < count % V) y[count / V * V + first] = of(x[count / V * V + first]);
#if CODES
    if (first == 0 && scale_result != nullptr) *scale_result = scale;
    if (first == 0 && zero_result != nullptr) *zero_result = (unsigned char)zero;
#endif
  }
};

#if BLOCKS > 1
#define TOGETHER __cluster_dims__(BLOCKS, 1, 1)
#else
#define TOGETHER
#endif

// All that a thread reads is on its way at once, and stays in its registers.
extern "C" __global__ void TOGETHER __launch_bounds__(1024) dynamic_quantize(DYNAMIC_QUANTIZE_PARAMETERS) {
  __shared__ float scratch[32], lows[1], highs[1];
  await_operands();
  const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, step = (i64)gridDim.x * blockDim.x;
  Vector<T, V> parts[TURNS];
#pragma unroll
  for (int turn = 0; turn < TURNS; ++turn)
    if (first + turn * step < count / V) parts[turn] = reinterpret_cast<const Vector<T, V>*>(x)[first + turn * step];
  Limits limits = {0.0f, 0.0f};
#pragma unroll
  for (int turn = 0; turn < TURNS; ++turn)
    if (first + turn * step < count / V) widen(limits, parts[turn]);
  widen_by_rest(limits, x, count, first);
  limits = block_limits(limits, scratch);
#if BLOCKS > 1
  if (threadIdx.x == 0) {
    lows[0] = limits.low;
    highs[0] = limits.high;
  }
  meet_cluster();
#pragma unroll
  for (int rank = 0; rank < BLOCKS; ++rank) {
    limits.low = fminf(limits.low, of_block(lows, rank));
    limits.high = fmaxf(limits.high, of_block(highs, rank));
  }
#endif
  const Codes codes(limits);
#pragma unroll
  for (int turn = 0; turn < TURNS; ++turn)
    if (first + turn * step < count / V) reinterpret_cast<Vector<Result, V>*>(y)[first + turn * step] = codes.of(parts[turn]);
  codes.write_rest(x, y, scale, zero, count, first);
#if BLOCKS > 1
  meet_cluster();  // nobody leaves while others read from it
#endif
}

extern "C" __global__ void __launch_bounds__(256) dynamic_quantize_limits(DYNAMIC_QUANTIZE_LIMITS_PARAMETERS) {
  __shared__ float scratch[32];
  await_operands();
  const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, step = (i64)gridDim.x * blockDim.x;
  Limits limits = {0.0f, 0.0f};
#pragma unroll 4
  for (i64 i = first; i < count / V; i += step) widen(limits, reinterpret_cast<const Vector<T, V>*>(x)[i]);
  widen_by_rest(limits, x, count, first);
  limits = block_limits(limits, scratch);
  if (threadIdx.x == 0) {
    by_block[2 * blockIdx.x] = limits.low;
    by_block[2 * blockIdx.x + 1] = limits.high;
  }
}

extern "C" __global__ void __launch_bounds__(256) dynamic_quantize_write(DYNAMIC_QUANTIZE_WRITE_PARAMETERS) {
  __shared__ float scratch[32];
  await_operands();
  Limits limits = {0.0f, 0.0f};
  for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
    limits.low = fminf(limits.low, by_block[2 * i]);
    limits.high = fmaxf(limits.high, by_block[2 * i + 1]);
  }
  const Codes codes(block_limits(limits, scratch));
  const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, step = (i64)gridDim.x * blockDim.x;
#pragma unroll 4
  for (i64 i = first; i < count / V; i += step) reinterpret_cast<Vector<Result, V>*>(y)[i] = codes.of(reinterpret_cast<const Vector<T, V>*>(x)[i]);
  codes.write_rest(x, y, scale, zero, count, first);
}
