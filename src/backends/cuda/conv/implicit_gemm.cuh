// SPDX-License-Identifier: Apache-2.0
//
// Convolution of channels-last images, and matmuls of rows with weights, on tensor cores: the result is a matrix of pixels by
// filters whose inner axis runs over taps and channels. A block of four or eight warps makes BM x BN of it, BK of the inner axis a time;
// the parts of images and weights for the next steps are on their way to shared memory meanwhile. Weights are constants: their
// first parts are fetched while the kernel before this one still runs. Where there are few blocks, SPLITS of them share a piece
// of the result: as a cluster (CLUSTER) they add up through each other's shared memory, elsewhere a second kernel does.
//
// Where several matmuls share their images, FILTERS are those of all of them and each has ROW_FILTERS and a result of its own.
//
// Before this stand T and MMA_TYPE ("f16" or "bf16"), BM, BN, BK, WARPS, WARPS_M (of them along BM), STAGES, SPLITS, CLUSTER;
// CHANNELS (a multiple of 8), FILTERS (even where SPLITS > 1), ROW_FILTERS (FILTERS or a multiple of BN), TAPS, TAPS_W and, per spatial axis, STRIDE, DILATION and PAD; the
// parameters, the epilogue's switches and finish().

#define PITCH (BK + 8)               // elements per row in shared memory: neighbouring rows in other banks
#define DEPTH (TAPS * CHANNELS)
#define STEPS ((DEPTH + BK - 1) / BK)
#define THREADS (WARPS * 32)
#define WARPS_N (WARPS / WARPS_M)
#define TILES_M (BM / WARPS_M / 16)
#define TILES_N (BN / WARPS_N / 8)
#define PIECES (BK / 8)              // of 16 bytes in a row
#define PASS (THREADS / PIECES)         // rows that the block fetches at once
#define ROWS_A (BM / PASS)           // pieces that a thread fetches per step
#define ROWS_B (BN / PASS)

static inline void multiply(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
static inline void load_matrices(unsigned* to, const T* row) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at));
}
// 16 bytes on their way to shared memory; zeros where there is nothing to read.
static inline void fetch(T* to, const T* from, bool there) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(at), "l"(from), "r"(there ? 16 : 0));
}

struct Results {
  T *a, *b, *c, *d;
  // Of a matmul, without an array, which would lie in memory.
  T* of(int product) const {
    if (ROW_FILTERS == FILTERS || product == 0) return a;
    return product == 1 ? b : product == 2 ? c : d;
  }
};

// Where the window of a pixel begins.
struct Window {
  int h, w;
  i64 image;
  bool there;
};

static inline float finish(float sum, const float* bias, const T* residual, i64 at, int filter) {
  if (HAS_BIAS && !LATE_BIAS) sum += bias[filter];
  return finish(sum, HAS_RESIDUAL ? as_float(residual[at]) : 0.0f, LATE_BIAS ? bias[filter] : 0.0f);
}

#if CLUSTER
#define IN_CLUSTERS __cluster_dims__(1, 1, SPLITS)
#else
#define IN_CLUSTERS
#endif

static inline void store(float low, float high, const float* bias, const T* residual, const Results& results, int pixel, int filter) {
  const i64 at = (i64)pixel * ROW_FILTERS + filter % ROW_FILTERS;
  T* const y = results.of(filter / ROW_FILTERS);
  if (ROW_FILTERS % 2 != 0) {  // pairs do not begin at multiples of two
    y[at] = convert<T>(finish(low, bias, residual, at, filter));
    if (filter + 1 < FILTERS) y[at + 1] = convert<T>(finish(high, bias, residual, at + 1, filter + 1));
    return;
  }
  Vector<T, 2> result;
  result.at[0] = convert<T>(finish(low, bias, residual, at, filter));
  result.at[1] = convert<T>(finish(high, bias, residual, at + 1, filter + 1));
  *reinterpret_cast<Vector<T, 2>*>(y + at) = result;
}

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS) implicit_gemm(IMPLICIT_GEMM_PARAMETERS) {
  const Results results = {y0, y1, y2, y3};
  extern __shared__ uint4 memory[];
  T* const shared_a = reinterpret_cast<T*>(memory);
  T* const shared_b = shared_a + STAGES * BM * PITCH;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_m = warp % WARPS_M, warp_n = warp / WARPS_M;
  const int first_pixel = blockIdx.y * BM, first_filter = blockIdx.x * BN;
  const int begin = (int)(blockIdx.z * STEPS / SPLITS), end = (int)((blockIdx.z + 1) * STEPS / SPLITS);

  // This thread fetches piece `piece` of rows row, row + PASS, ... of both operands.
  const int row = threadIdx.x / PIECES, piece = threadIdx.x % PIECES * 8;
  Window windows[ROWS_A];
#pragma unroll
  for (int i = 0; i < ROWS_A; ++i) {
    const int pixel = first_pixel + row + i * PASS, in_image = pixel % (images.out_h * images.out_w);
    windows[i] = {in_image / images.out_w * STRIDE_H - PAD_H, in_image % images.out_w * STRIDE_W - PAD_W, (i64)(pixel / (images.out_h * images.out_w)) * images.in_h * images.in_w,
                  pixel < images.pixels};
  }
  const auto fetch_images = [&](int step) {
    const int stage = step % STAGES, k = step * BK + piece, tap = TAPS == 1 ? 0 : k / CHANNELS, channel = TAPS == 1 ? k : k % CHANNELS;
#pragma unroll
    for (int i = 0; i < ROWS_A; ++i) {
      const int h = windows[i].h + tap / TAPS_W * DILATION_H, w = windows[i].w + tap % TAPS_W * DILATION_W;
      const bool there = windows[i].there && k < DEPTH && h >= 0 && h < images.in_h && w >= 0 && w < images.in_w;
      fetch(shared_a + (stage * BM + row + i * PASS) * PITCH + piece, there ? x + (windows[i].image + (i64)h * images.in_w + w) * CHANNELS + channel : x, there);
    }
  };
  const auto fetch_weights = [&](int step) {
    const int stage = step % STAGES, k = step * BK + piece;
#pragma unroll
    for (int i = 0; i < ROWS_B; ++i) {
      const int filter = first_filter + row + i * PASS;
      const bool there = filter < FILTERS && k < DEPTH;
      fetch(shared_b + (stage * BN + row + i * PASS) * PITCH + piece, there ? weights + (i64)filter * DEPTH + k : weights, there);
    }
  };

  float sums[TILES_M][TILES_N][4] = {};
#pragma unroll
  for (int ahead = 0; ahead < STAGES - 1; ++ahead)
    if (begin + ahead < end) fetch_weights(begin + ahead);
  // The rest of the weights comes nearer, too, while the kernel before ends; blocks of the same filters need not ask again.
  if (blockIdx.y == 0) {
    constexpr int kLine = 64;  // elements of a cache line
    const int from = (begin + STAGES - 1) * BK, lines = (min(end * BK, DEPTH) - from + kLine - 1) / kLine;
    for (int i = threadIdx.x; i < BN * lines; i += THREADS) {
      const int filter = first_filter + i / lines;
      if (filter < FILTERS) asm volatile("prefetch.global.L2 [%0];" : : "l"(weights + (i64)filter * DEPTH + from + i % lines * kLine));
    }
  }
  await_operands();
#pragma unroll
  for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
    if (begin + ahead < end) fetch_images(begin + ahead);
    asm volatile("cp.async.commit_group;");
  }
  for (int step = begin; step < end; ++step) {
    asm volatile("cp.async.wait_group %0;" : : "n"(STAGES - 2));
    __syncthreads();
    if (step + STAGES - 1 < end) fetch_weights(step + STAGES - 1), fetch_images(step + STAGES - 1);
    asm volatile("cp.async.commit_group;");
    const T* a = shared_a + (step % STAGES * BM + warp_m * (BM / WARPS_M)) * PITCH;
    const T* b = shared_b + (step % STAGES * BN + warp_n * (BN / WARPS_N)) * PITCH;
    // The operands of the next matmuls are read while the present ones are multiplied.
    unsigned rows[2][TILES_M][4], columns[2][TILES_N / 2][4];
    const auto read = [&](int part) {
      const int k = part * 16;
#pragma unroll
      for (int m = 0; m < TILES_M; ++m) load_matrices(rows[part % 2][m], a + (m * 16 + lane % 16) * PITCH + k + lane / 16 * 8);
#pragma unroll
      for (int n = 0; n < TILES_N / 2; ++n) load_matrices(columns[part % 2][n], b + (n * 16 + lane / 16 * 8 + lane % 8) * PITCH + k + lane / 8 % 2 * 8);
    };
    read(0);
#pragma unroll
    for (int part = 0; part < BK / 16; ++part) {
      if (part + 1 < BK / 16) read(part + 1);
#pragma unroll
      for (int m = 0; m < TILES_M; ++m)
#pragma unroll
        for (int n = 0; n < TILES_N; ++n) multiply(sums[m][n], rows[part % 2][m], columns[part % 2][n / 2][n % 2 * 2], columns[part % 2][n / 2][n % 2 * 2 + 1]);
    }
  }

#if CLUSTER
  // The pieces' sums take the place of the operands; each block adds up and finishes its share of the rows.
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  constexpr int kPitch = BN + 8;
  float* const piece_sums = reinterpret_cast<float*>(memory);
#endif
#pragma unroll
  for (int m = 0; m < TILES_M; ++m)
#pragma unroll
    for (int n = 0; n < TILES_N; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int down = warp_m * (BM / WARPS_M) + m * 16 + lane / 4 + half * 8, across = warp_n * (BN / WARPS_N) + n * 8 + lane % 4 * 2;
        const int pixel = first_pixel + down, filter = first_filter + across;
        const float low = sums[m][n][2 * half], high = sums[m][n][2 * half + 1];
#if CLUSTER
        *reinterpret_cast<float2*>(piece_sums + down * kPitch + across) = make_float2(low, high);
#else
        if (pixel >= images.pixels || filter >= FILTERS) continue;
        if (SPLITS > 1) *reinterpret_cast<float2*>(partial + ((i64)blockIdx.z * images.pixels + pixel) * FILTERS + filter) = make_float2(low, high);
        else store(low, high, bias, residual, results, pixel, filter);
#endif
      }
#if CLUSTER
  meet_cluster();
  constexpr int kPairs = BM * BN / 2 / SPLITS;
  for (int i = threadIdx.x; i < kPairs; i += THREADS) {
    const int at = 2 * ((int)blockIdx.z * kPairs + i), down = at / BN, across = at % BN;
    float low = 0, high = 0;
#pragma unroll
    for (int rank = 0; rank < SPLITS; ++rank) {
      const float2 part = pair_of_block(piece_sums + down * kPitch + across, rank);
      low += part.x;
      high += part.y;
    }
    if (first_pixel + down < images.pixels && first_filter + across < FILTERS) store(low, high, bias, residual, results, first_pixel + down, first_filter + across);
  }
  meet_cluster();  // nobody leaves while others read from it
#endif
}

// Adds up the parts and finishes; two neighbouring filters per thread.
extern "C" __global__ void implicit_gemm_sum(IMPLICIT_GEMM_SUM_PARAMETERS) {
  const Results results = {y0, y1, y2, y3};
  await_operands();
  const i64 at = 2 * ((i64)blockIdx.x * blockDim.x + threadIdx.x), count = (i64)pixels * FILTERS;
  if (at >= count) return;
  float low = 0, high = 0;
#pragma unroll
  for (int i = 0; i < SPLITS; ++i) {
    const float2 part = *reinterpret_cast<const float2*>(partial + i * count + at);
    low += part.x;
    high += part.y;
  }
  store(low, high, bias, residual, results, (int)(at / FILTERS), (int)(at % FILTERS));
}
