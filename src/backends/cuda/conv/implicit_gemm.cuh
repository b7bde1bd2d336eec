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
// Sums of codes (CODED) that are whole numbers are integers (SUMS_INTEGERS), which become floats before anything is done to them; around images lies their zero point.
//
// Before this stand T (elements of both operands) and MMA_TYPE ("f16", "bf16" or "e4m3") and MMA_DEPTH (of an instruction); CODED; Sum (int or float), HAS_ZERO (whether the operand's zero point is no code of 0); BM, BN, BK, WARPS, WARPS_M (of them along BM), STAGES, SPLITS, CLUSTER;
// CHANNELS (a multiple of UNIT), UNIT (elements that are fetched together, a piece of 16 bytes or a part of it), FILTERS (even where SPLITS > 1), ROW_FILTERS (FILTERS or a multiple of BN), TAPS, TAPS_W and, per spatial axis, STRIDE, DILATION and PAD; the
// KEPT_AT (where in shared memory, in bytes, a residual of codes lies), the parameters, the epilogue's switches and finish().

#define PIECE (16 / (int)sizeof(T))  // elements of 16 bytes
#define PITCH (BK + PIECE)           // elements per row in shared memory: neighbouring rows in other banks
#define AHEAD (STAGES - 1)
#define STEP (2 * PIECE)             // of the inner axis that an instruction multiplies
#define DEPTH (TAPS * CHANNELS)
#define STEPS ((DEPTH + BK - 1) / BK)
#define THREADS (WARPS * 32)
#define WARPS_N (WARPS / WARPS_M)
#define TILES_M (BM / WARPS_M / 16)
#define TILES_N (BN / WARPS_N / 8)
#define PIECES (BK / PIECE)          // in a row
#define PASS (THREADS / PIECES)         // rows that the block fetches at once
#define ROWS_A (BM / PASS)           // pieces that a thread fetches per step
#define ROWS_B (BN / PASS)

#if SUMS_INTEGERS
static inline void multiply(int* c, const unsigned* a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#else
static inline void multiply(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k" MMA_DEPTH ".row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif
// Where an element of a row lies.
static inline int place_of(int row, int element) {
  return row * PITCH + element;
}
static inline void load_matrices(unsigned* to, const T* row) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at));
}
// Elements on their way to shared memory, of 4, 8 or 16 bytes together; zeros where there is nothing to read.
template <int COUNT, typename E> static inline void fetch(E* to, const E* from, bool there) {
  constexpr int kBytes = COUNT * (int)sizeof(E);
  const unsigned at = (unsigned)__cvta_generic_to_shared(to), bytes = there ? kBytes : 0;
  if (kBytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(at), "l"(from), "r"(bytes));
  else if (kBytes == 8) asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" : : "r"(at), "l"(from), "r"(bytes));
  else asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" : : "r"(at), "l"(from), "r"(bytes));
}

// The same of an image, which has its zero point around it: codes are fetched by whole pieces.
static inline void fetch_image(T* to, const T* from, bool there, unsigned around) {
  if (!HAS_ZERO || there) fetch<UNIT>(to, from, there);
  else *reinterpret_cast<uint4*>(to) = {around, around, around, around};
}

// The window of a pixel: where its first tap lies, in pixels, and which taps lie inside the image.
struct Window {
  int first;
  unsigned long long inside[(TAPS + 63) / 64];
};

#if CLUSTER
#define IN_CLUSTERS __cluster_dims__(1, 1, SPLITS)
#else
#define IN_CLUSTERS
#endif

// Where a thread's sums lie apart, a block puts all down and finishes them in vectors.
#define PUTS_DOWN (CLUSTER || (SPLITS == 1 && ENCODES))
// A block's share of a residual of codes waits in shared memory, behind all else there.
#define KEEPS_ADDED (ADDS_CODES && PUTS_DOWN && SPLITS == 1 && ROW_FILTERS == FILTERS && FILTERS % 16 == 0)
#define WIDTH (ROW_FILTERS % 4 == 0 ? 4 : ROW_FILTERS % 2 == 0 ? 2 : 1)

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS) implicit_gemm(IMPLICIT_GEMM_PARAMETERS) {
  const Ends ends = {bias, factors, residual, numbers, {y0, y1, y2, y3}};
  extern __shared__ uint4 memory[];
  T* const shared_a = reinterpret_cast<T*>(memory);
  T* const shared_b = shared_a + STAGES * BM * PITCH;
#if KEEPS_ADDED
  Added* const kept = reinterpret_cast<Added*>(memory) + KEPT_AT;
#endif
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_m = warp % WARPS_M, warp_n = warp / WARPS_M;
  const int first_pixel = blockIdx.y * BM, first_filter = blockIdx.x * BN;
  const int begin = (int)(blockIdx.z * STEPS / SPLITS), end = (int)((blockIdx.z + 1) * STEPS / SPLITS);

  // This thread fetches piece `piece` of rows row, row + PASS, ... of both operands.
  const int row = threadIdx.x / PIECES, piece = threadIdx.x % PIECES * PIECE;
  Window windows[ROWS_A];
#pragma unroll
  for (int i = 0; i < ROWS_A; ++i) {
    const int pixel = first_pixel + row + i * PASS, in_image = pixel % (images.out_h * images.out_w);
    const int top = in_image / images.out_w * STRIDE_H - PAD_H, left = in_image % images.out_w * STRIDE_W - PAD_W;
    windows[i] = {(pixel / (images.out_h * images.out_w) * images.in_h + top) * images.in_w + left, {}};
#pragma unroll
    for (int tap = 0; tap < TAPS; ++tap) {
      const int h = top + tap / TAPS_W * DILATION_H, w = left + tap % TAPS_W * DILATION_W;
      const bool there = pixel < images.pixels && h >= 0 && h < images.in_h && w >= 0 && w < images.in_w;
      windows[i].inside[tap / 64] |= (unsigned long long)there << tap % 64;
    }
  }
  const unsigned around = HAS_ZERO ? ((int)numbers.at[0] & 0xff) * 0x01010101u : 0;  // the operand's zero point
  const auto fetch_images = [&](int step) {
    const int stage = step % STAGES;
#pragma unroll
    for (int unit = piece; unit < piece + PIECE; unit += UNIT) {
      const int k = step * BK + unit, tap = TAPS == 1 ? 0 : k / CHANNELS, channel = TAPS == 1 ? k : k % CHANNELS;
      const int ahead = tap / TAPS_W * DILATION_H * images.in_w + tap % TAPS_W * DILATION_W;
#pragma unroll
      for (int i = 0; i < ROWS_A; ++i) {
        const bool there = k < DEPTH && (windows[i].inside[TAPS <= 64 ? 0 : tap / 64] >> tap % 64 & 1) != 0;
        fetch_image(shared_a + stage * BM * PITCH + place_of(row + i * PASS, unit), there ? x + (i64)(windows[i].first + ahead) * CHANNELS + channel : x, there, around);
      }
    }
  };
  const auto fetch_weights = [&](int step) {
    const int stage = step % STAGES;
#pragma unroll
    for (int unit = piece; unit < piece + PIECE; unit += UNIT) {
      const int k = step * BK + unit;
#pragma unroll
      for (int i = 0; i < ROWS_B; ++i) {
        const int filter = first_filter + row + i * PASS;
        const bool there = filter < FILTERS && k < DEPTH;
        fetch<UNIT>(shared_b + stage * BN * PITCH + place_of(row + i * PASS, unit), there ? weights + (i64)filter * DEPTH + k : weights, there);
      }
    }
  };

  Sum sums[TILES_M][TILES_N][4] = {};
#pragma unroll
  for (int ahead = 0; ahead < AHEAD; ++ahead)
    if (begin + ahead < end) fetch_weights(begin + ahead);
  // The rest of the weights comes nearer, too, while the kernel before ends; blocks of the same filters need not ask again.
  if (blockIdx.y == 0) {
    constexpr int kLine = 8 * PIECE;  // elements of a cache line
    const int from = (begin + AHEAD) * BK, lines = (min(end * BK, DEPTH) - from + kLine - 1) / kLine;
    for (int i = threadIdx.x; i < BN * lines; i += THREADS) {
      const int filter = first_filter + i / lines;
      if (filter < FILTERS) asm volatile("prefetch.global.L2 [%0];" : : "l"(weights + (i64)filter * DEPTH + from + i % lines * kLine));
    }
  }
  await_operands();
#if KEEPS_ADDED
  // What is added comes along with the first operands.
  constexpr int kAddedPieces = BN / 16;
  for (int i = threadIdx.x; i < BM * kAddedPieces; i += THREADS) {
    const int down = i / kAddedPieces, pixel = first_pixel + down, filter = first_filter + i % kAddedPieces * 16;
    const bool there = pixel < images.pixels && filter < FILTERS;
    fetch<16>(kept + down * BN + i % kAddedPieces * 16, there ? residual + (i64)pixel * FILTERS + filter : residual, there);
  }
#endif
#pragma unroll
  for (int ahead = 0; ahead < AHEAD; ++ahead) {
    if (begin + ahead < end) fetch_images(begin + ahead);
    asm volatile("cp.async.commit_group;");
  }
  const auto fetch_step = [&](int step) {
    if (step < end) fetch_weights(step), fetch_images(step);
    asm volatile("cp.async.commit_group;");
  };
  for (int step = begin; step < end; ++step) {
    asm volatile("cp.async.wait_group %0;" : : "n"(AHEAD - 1));
    __syncthreads();
    fetch_step(step + AHEAD);
    const T* a = shared_a + (step % STAGES * BM + warp_m * (BM / WARPS_M)) * PITCH;
    const T* b = shared_b + (step % STAGES * BN + warp_n * (BN / WARPS_N)) * PITCH;
    // The operands of the next matmuls are read while the present ones are multiplied.
    unsigned rows[2][TILES_M][4], columns[2][TILES_N / 2][4];
    const auto read = [&](int part) {
      const int k = part * STEP;
#pragma unroll
      for (int m = 0; m < TILES_M; ++m) load_matrices(rows[part % 2][m], a + (m * 16 + lane % 16) * PITCH + k + lane / 16 * PIECE);
#pragma unroll
      for (int n = 0; n < TILES_N / 2; ++n) load_matrices(columns[part % 2][n], b + (n * 16 + lane / 16 * 8 + lane % 8) * PITCH + k + lane / 8 % 2 * PIECE);
    };
    read(0);
#pragma unroll
    for (int part = 0; part < BK / STEP; ++part) {
      if (part + 1 < BK / STEP) read(part + 1);
#pragma unroll
      for (int m = 0; m < TILES_M; ++m)
#pragma unroll
        for (int n = 0; n < TILES_N; ++n) multiply(sums[m][n], rows[part % 2][m], columns[part % 2][n / 2][n % 2 * 2], columns[part % 2][n / 2][n % 2 * 2 + 1]);
    }
  }

#if PUTS_DOWN
  // The sums take the place of the operands; each block of a cluster adds up and finishes its share of the rows.
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  constexpr int kPitch = BN + 8;
  float* const put_down = reinterpret_cast<float*>(memory);
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
#if PUTS_DOWN
        *reinterpret_cast<float2*>(put_down + down * kPitch + across) = make_float2(low, high);
#else
        if (pixel >= images.pixels || filter >= FILTERS) continue;
        if (SPLITS > 1) *reinterpret_cast<float2*>(partial + ((i64)blockIdx.z * images.pixels + pixel) * FILTERS + filter) = make_float2(low, high);
        else ends.store_pair(low, high, pixel, filter);
#endif
      }
#if PUTS_DOWN
#if CLUSTER
  meet_cluster();
#else
  __syncthreads();
#endif
  const auto sums_of = [&](float* whole, int down, int across) {
#if CLUSTER
#pragma unroll
    for (int pair = 0; pair < WIDTH; pair += 2) {
      whole[pair] = whole[pair + 1] = 0;
#pragma unroll
      for (int rank = 0; rank < SPLITS; ++rank) {
        const float2 part = pair_of_block(put_down + down * kPitch + across + pair, rank);
        whole[pair] += part.x;
        whole[pair + 1] += part.y;
      }
    }
#else
    const Vector<float, WIDTH> all = *reinterpret_cast<const Vector<float, WIDTH>*>(put_down + down * kPitch + across);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) whole[i] = all.at[i];
#endif
  };
  const auto pixel_of = [&](int down) { return first_pixel + down < images.pixels ? first_pixel + down : -1; };
  constexpr int kRows = BM / SPLITS;
#if KEEPS_ADDED
  const auto added_of = [&](int down, int across) { return *reinterpret_cast<const Vector<Added, WIDTH>*>(kept + down * BN + across); };
  ends.finish_rows<WIDTH, BN, THREADS>((int)blockIdx.z * kRows, ((int)blockIdx.z + 1) * kRows, first_filter, sums_of, pixel_of, added_of);
#else
  ends.finish_rows<WIDTH, BN, THREADS>((int)blockIdx.z * kRows, ((int)blockIdx.z + 1) * kRows, first_filter, sums_of, pixel_of);
#endif
#if CLUSTER
  meet_cluster();  // nobody leaves while others read from it
#endif
#endif
}

// Adds up the parts and finishes; two neighbouring filters per thread.
extern "C" __global__ void implicit_gemm_sum(IMPLICIT_GEMM_SUM_PARAMETERS) {
  const Ends ends = {bias, factors, residual, numbers, {y0, y1, y2, y3}};
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
  ends.store_pair(low, high, (int)(at / FILTERS), (int)(at % FILTERS));
}
