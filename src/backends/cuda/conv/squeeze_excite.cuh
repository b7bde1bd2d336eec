// SPDX-License-Identifier: Apache-2.0
//
// Squeeze and excitation: the mean of every channel of an image, and one factor per channel by two matmuls with an activation
// each. BLOCKS blocks (a cluster where that is more than one) share an image: its pixels, then the results of either matmul.
//
// Before this stand T, V, BLOCKS, THREADS, CHANNELS, BETWEEN, RESULTS, CHANNELS_LAST, the parameters, and what is done to each: pooled(),
// squeezed() and excited(). The first weights lie as [BETWEEN][CHANNELS], the second as [BETWEEN][RESULTS].

#define SHARE(count) (((count) + BLOCKS - 1) / BLOCKS)   // of one block

#if BLOCKS > 1
#define ENTRY __cluster_dims__(BLOCKS, 1, 1)
static inline float of_rank(const float* own, int rank) { return of_block(own, rank); }
static inline void meet() { meet_cluster(); }
#else
#define ENTRY
static inline float of_rank(const float* own, int) { return *own; }
static inline void meet() { __syncthreads(); }
#endif

#if CHANNELS_LAST
// Sums over the pixels that are this block's share, THREADS / CHUNK of them at a time.
static inline void sum_pixels(const T* image, int pixels, float* sums) {
  typedef Vector<T, V> Part;
  constexpr int VECTORS = CHANNELS / V, CHUNK = VECTORS < THREADS ? VECTORS : THREADS, ROWS = THREADS / CHUNK;
  __shared__ float totals[THREADS * V];
  const int lane = threadIdx.x % CHUNK, row = threadIdx.x / CHUNK;
  for (int first = 0; first < VECTORS; first += CHUNK) {
    float own[V] = {};
    if (row < ROWS && first + lane < VECTORS) {
#pragma unroll 8
      for (int pixel = blockIdx.x * ROWS + row; pixel < pixels; pixel += BLOCKS * ROWS) {
        const Part part = *reinterpret_cast<const Part*>(image + (i64)pixel * CHANNELS + (first + lane) * V);
#pragma unroll
        for (int i = 0; i < V; ++i) own[i] += as_float(part.at[i]);
      }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < V; ++i) totals[threadIdx.x * V + i] = own[i];
    __syncthreads();
    for (int c = threadIdx.x; c < CHUNK * V; c += THREADS) {
      float total = 0;
      for (int r = 0; r < ROWS; ++r) total += totals[r * CHUNK * V + c];
      if (first * V + c < CHANNELS) sums[first * V + c] = total;
    }
  }
}
#else
// Sums over the planes that are this block's share, a warp each; nothing for the others.
static inline void sum_pixels(const T* image, int pixels, float* sums) {
  for (int c = threadIdx.x / 32; c < CHANNELS; c += THREADS / 32) {
    float total = 0;
    if (c / SHARE(CHANNELS) == blockIdx.x) {
#pragma unroll 8
      for (int pixel = threadIdx.x % 32; pixel < pixels; pixel += 32) total += as_float(image[(i64)c * pixels + pixel]);
      total = warp_sum(total);
    }
    if (threadIdx.x % 32 == 0) sums[c] = total;
  }
}
#endif

// What a lane adds to the product of a row with the means: pairs of elements where they come in pairs.
static inline float product_of_row(const T* row, const float* means) {
  constexpr int STEP = CHANNELS % 2 == 0 && V > 1 ? 2 : 1;
  typedef Vector<T, STEP> Part;
  float sum = 0;
#pragma unroll 16
  for (int c = threadIdx.x % 32 * STEP; c < CHANNELS; c += 32 * STEP) {
    const Part part = *reinterpret_cast<const Part*>(row + c);
#pragma unroll
    for (int i = 0; i < STEP; ++i) sum += means[c + i] * as_float(part.at[i]);
  }
  return sum;
}

extern "C" __global__ void ENTRY __launch_bounds__(THREADS) squeeze_excite(SQUEEZE_EXCITE_PARAMETERS) {
  __shared__ float sums[CHANNELS], means[CHANNELS], own_between[SHARE(BETWEEN)], between[BETWEEN], parts[THREADS];
  await_operands();
  const int rank = blockIdx.x;
  sum_pixels(x + (i64)blockIdx.y * CHANNELS * pixels, pixels, sums);
  meet();
  for (int c = threadIdx.x; c < CHANNELS; c += THREADS) {
    float total = 0;
#pragma unroll
    for (int other = 0; other < BLOCKS; ++other) total += of_rank(sums + c, other);
    means[c] = pooled(total / pixels);
  }
  __syncthreads();
  for (int own = threadIdx.x / 32; own < SHARE(BETWEEN); own += THREADS / 32) {
    const int k = rank * SHARE(BETWEEN) + own;
    if (k >= BETWEEN) break;
    const float sum = warp_sum(product_of_row(squeeze + k * CHANNELS, means));
    if (threadIdx.x % 32 == 0) own_between[own] = squeezed(sum + squeeze_bias[k]);
  }
  meet();
  for (int k = threadIdx.x; k < BETWEEN; k += THREADS) between[k] = of_rank(own_between + k % SHARE(BETWEEN), k / SHARE(BETWEEN));
  __syncthreads();
  // A thread per result and part of its sum, whole warps side by side.
  constexpr int SIDE = SHARE(RESULTS) < THREADS ? SHARE(RESULTS) : THREADS, PARTS = THREADS / SIDE;
  const int side = threadIdx.x % SIDE, part = threadIdx.x / SIDE;
  for (int first = 0; first < SHARE(RESULTS); first += SIDE) {
    const int own = first + side, c = rank * SHARE(RESULTS) + own;
    float sum = 0;
    if (part < PARTS && own < SHARE(RESULTS) && c < RESULTS)
#pragma unroll 16
      for (int k = part; k < BETWEEN; k += PARTS) sum += between[k] * as_float(excite[k * RESULTS + c]);
    __syncthreads();
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (part != 0 || own >= SHARE(RESULTS) || c >= RESULTS) continue;
    for (int other = 1; other < PARTS; ++other) sum += parts[other * SIDE + side];
    y[(i64)blockIdx.y * RESULTS + c] = convert<T>(excited(sum + excite_bias[c]));
  }
  meet();  // no block leaves while another reads its memory
}
