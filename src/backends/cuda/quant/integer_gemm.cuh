// SPDX-License-Identifier: Apache-2.0
//
// Products of bytes summed as integers on tensor cores: the result is a matrix of pixels by filters whose inner axis runs over taps and
// channels. A block makes BM x BN of it, BK bytes of the inner axis a time; parts of images and weights for the next steps are on
// their way to shared memory meanwhile. Sums end in registers: less what zero points add, as floats, as bytes.
//
// Before this stand A (bytes of images) and A_TYPE ("u8" or "s8"), Result and Added, BM, BN, BK, WARPS, WARPS_M (of them along BM),
// STAGES; CHANNELS, a multiple of UNIT (4, 8 or 16), and FETCH_UNIT, the instruction that copies so many bytes; FILTERS, TAPS, TAPS_W and, per spatial axis, STRIDE, DILATION and PAD; ZERO (a byte, four
// times); ZERO_GIVEN, FACTORS (0, 1 or FILTERS), HAS_BIAS, HAS_RESIDUAL, the parameters, and finish(sum, residual), which makes a
// Result of a float.

#define PITCH (BK + 16)  // bytes per row in shared memory: neighbouring rows in other banks
#define DEPTH (TAPS * CHANNELS)
#define ROW ((DEPTH + 15) / 16 * 16)  // of weights, zeros behind
#define STEPS ((DEPTH + BK - 1) / BK)
#define THREADS (WARPS * 32)
#define WARPS_N (WARPS / WARPS_M)
#define TILES_M (BM / WARPS_M / 16)
#define TILES_N (BN / WARPS_N / 8)
#define PIECES (BK / 16)         // of a row
#define PASS (THREADS / PIECES)  // rows that the block fetches at once
#define ROWS_A (BM / PASS)
#define ROWS_B (BN / PASS)

static inline void multiply(int* c, const unsigned* a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32." A_TYPE ".s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
static inline void load_matrices(unsigned* to, const char* row) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at));
}
static inline void fetch_weights(char* to, const signed char* from, bool there) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(at), "l"(from), "r"(there ? 16 : 0));
}
// UNIT bytes of an image; around it lie zero points.
static inline void fetch_image(char* to, const A* from, bool there, unsigned around) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(to);
  if (there) asm volatile(FETCH_UNIT : : "r"(at), "l"(from));
  else
#pragma unroll
    for (int i = 0; i < UNIT / 4; ++i) reinterpret_cast<unsigned*>(to)[i] = around;
}

// Where the window of a pixel begins.
struct Window {
  int h, w;
  i64 image;
  bool there;
};

struct Ends {
  const int *base, *lean;
  const float *factor, *bias;
  const Added* residual;
  Result* y;
  int zero;
  // Of two neighbouring filters, `at` the place of the first.
  void store(const int* sums, int pixel, int filter) const {
    Vector<Result, 2> pair;
    const i64 at = (i64)pixel * FILTERS + filter;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int j = FILTERS % 2 == 0 || filter + i < FILTERS ? filter + i : filter;
      const int sum = sums[i] + base[j] + (ZERO_GIVEN ? zero * lean[j] : 0);
#if FACTORS
      float scaled = (float)sum * factor[FACTORS == 1 ? 0 : j];
      if (HAS_BIAS) scaled += bias[j];
      pair.at[i] = finish(scaled, HAS_RESIDUAL ? as_float(residual[at + j - filter]) : 0.0f);
#else
      pair.at[i] = sum;
#endif
    }
    if (FILTERS % 2 == 0) *reinterpret_cast<Vector<Result, 2>*>(y + at) = pair;
    else {
      y[at] = pair.at[0];
      if (filter + 1 < FILTERS) y[at + 1] = pair.at[1];
    }
  }
};

extern "C" __global__ void __launch_bounds__(THREADS) integer_gemm(INTEGER_GEMM_PARAMETERS) {
  extern __shared__ uint4 memory[];
  char* const shared_a = reinterpret_cast<char*>(memory);
  char* const shared_b = shared_a + STAGES * BM * PITCH;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_m = warp % WARPS_M, warp_n = warp / WARPS_M;
  const int first_pixel = blockIdx.y * BM, first_filter = blockIdx.x * BN;

  // This thread fetches piece `piece` of rows row, row + PASS, ... of both operands.
  const int row = threadIdx.x / PIECES, piece = threadIdx.x % PIECES * 16;
  Window windows[ROWS_A];
#pragma unroll
  for (int i = 0; i < ROWS_A; ++i) {
    const int pixel = first_pixel + row + i * PASS, in_image = pixel % (images.out_h * images.out_w);
    windows[i] = {in_image / images.out_w * STRIDE_H - PAD_H, in_image % images.out_w * STRIDE_W - PAD_W, (i64)(pixel / (images.out_h * images.out_w)) * images.in_h * images.in_w,
                  pixel < images.pixels};
  }
  unsigned around = ZERO;
  const auto fetch_images = [&](int step) {
#pragma unroll
    for (int unit = 0; unit < 16; unit += UNIT) {
      const int stage = step % STAGES, k = step * BK + piece + unit, tap = TAPS == 1 ? 0 : k / CHANNELS, channel = TAPS == 1 ? k : k % CHANNELS;
#pragma unroll
      for (int i = 0; i < ROWS_A; ++i) {
        const int h = windows[i].h + tap / TAPS_W * DILATION_H, w = windows[i].w + tap % TAPS_W * DILATION_W;
        const bool there = windows[i].there && k < DEPTH && h >= 0 && h < images.in_h && w >= 0 && w < images.in_w;
        const i64 pixel = windows[i].image + (i64)h * images.in_w + w;
        fetch_image(shared_a + (stage * BM + row + i * PASS) * PITCH + piece + unit, x + pixel * CHANNELS + channel, there, around);
      }
    }
  };
  const auto fetch_filters = [&](int step) {
    const int stage = step % STAGES, k = step * BK + piece;
#pragma unroll
    for (int i = 0; i < ROWS_B; ++i) {
      const int filter = first_filter + row + i * PASS;
      const bool there = filter < FILTERS && k < ROW;
      fetch_weights(shared_b + (stage * BN + row + i * PASS) * PITCH + piece, there ? weights + (i64)filter * ROW + k : weights, there);
    }
  };

  int sums[TILES_M][TILES_N][4] = {};
#pragma unroll
  for (int ahead = 0; ahead < STAGES - 1; ++ahead)
    if (ahead < STEPS) fetch_filters(ahead);
  await_operands();
  const int given = ZERO_GIVEN ? (int)*zero : 0;
  if (ZERO_GIVEN) around = (unsigned char)given * 0x01010101u;
#pragma unroll
  for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
    if (ahead < STEPS) fetch_images(ahead);
    asm volatile("cp.async.commit_group;");
  }
  for (int step = 0; step < STEPS; ++step) {
    asm volatile("cp.async.wait_group %0;" : : "n"(STAGES - 2));
    __syncthreads();
    if (step + STAGES - 1 < STEPS) fetch_filters(step + STAGES - 1), fetch_images(step + STAGES - 1);
    asm volatile("cp.async.commit_group;");
    const char* a = shared_a + (step % STAGES * BM + warp_m * (BM / WARPS_M)) * PITCH;
    const char* b = shared_b + (step % STAGES * BN + warp_n * (BN / WARPS_N)) * PITCH;
    // The operands of the next products are read while the present ones are multiplied.
    unsigned rows[2][TILES_M][4], columns[2][TILES_N / 2][4];
    const auto read = [&](int part) {
      const int k = part * 32;
#pragma unroll
      for (int m = 0; m < TILES_M; ++m) load_matrices(rows[part % 2][m], a + (m * 16 + lane % 16) * PITCH + k + lane / 16 * 16);
#pragma unroll
      for (int n = 0; n < TILES_N / 2; ++n) load_matrices(columns[part % 2][n], b + (n * 16 + lane / 16 * 8 + lane % 8) * PITCH + k + lane / 8 % 2 * 16);
    };
    read(0);
#pragma unroll
    for (int part = 0; part < BK / 32; ++part) {
      if (part + 1 < BK / 32) read(part + 1);
#pragma unroll
      for (int m = 0; m < TILES_M; ++m)
#pragma unroll
        for (int n = 0; n < TILES_N; ++n) multiply(sums[m][n], rows[part % 2][m], columns[part % 2][n / 2][n % 2 * 2], columns[part % 2][n / 2][n % 2 * 2 + 1]);
    }
  }

  const Ends ends = {base, lean, factor, bias, residual, y, given};
#pragma unroll
  for (int m = 0; m < TILES_M; ++m)
#pragma unroll
    for (int n = 0; n < TILES_N; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int pixel = first_pixel + warp_m * (BM / WARPS_M) + m * 16 + lane / 4 + half * 8;
        const int filter = first_filter + warp_n * (BN / WARPS_N) + n * 8 + lane % 4 * 2;
        if (pixel < images.pixels && filter < FILTERS) ends.store(sums[m][n] + 2 * half, pixel, filter);
      }
}
