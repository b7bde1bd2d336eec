// SPDX-License-Identifier: Apache-2.0
//
// Convolution of channels-last images, and products of rows with weights, on tensor cores: the result is a matrix of pixels by
// filters whose inner axis runs over taps and channels. A block of four warps makes BM x BN of it, BK of the inner axis a time;
// the parts of images and weights for the next steps are on their way to shared memory meanwhile. Where there are few blocks,
// SPLITS of them share a piece of the result and a second kernel adds up.
//
// Before this stand T and MMA_TYPE ("f16" or "bf16"), BM, BN, WARPS_M (warps along BM), STAGES, SPLITS; CHANNELS (a multiple of
// 8), FILTERS (even), TAPS, TAPS_W and, per spatial axis, STRIDE, DILATION and PAD; the epilogue's switches and activate().

#define BK 32
#define PITCH (BK + 8)               // elements per row in shared memory: neighbouring rows in other banks
#define DEPTH (TAPS * CHANNELS)
#define STEPS ((DEPTH + BK - 1) / BK)
#define WARPS_N (4 / WARPS_M)
#define TILES_M (BM / WARPS_M / 16)
#define TILES_N (BN / WARPS_N / 8)
#define ROWS_A (BM / 32)             // 16-byte pieces that a thread fetches per step
#define ROWS_B (BN / 32)

struct Images {
  int pixels, in_h, in_w, out_h, out_w;
};

static inline void multiply(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
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

// Where the window of a pixel begins.
struct Window {
  int h, w;
  i64 image;
  bool there;
};

static inline float finish(float sum, const float* bias, const T* residual, i64 at, int filter) {
  if (HAS_BIAS) sum += bias[filter];
  if (HAS_RESIDUAL && !RESIDUAL_LAST) sum += as_float(residual[at]);
  sum = activate(sum);
  if (HAS_RESIDUAL && RESIDUAL_LAST) sum += as_float(residual[at]);
  return sum;
}

extern "C" __global__ void __launch_bounds__(128) implicit_gemm(const T* x, const T* weights, const float* bias, const T* residual, T* y, float* partial, const Images images) {
  extern __shared__ uint4 memory[];
  T* const shared_a = reinterpret_cast<T*>(memory);
  T* const shared_b = shared_a + STAGES * BM * PITCH;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_m = warp % WARPS_M, warp_n = warp / WARPS_M;
  const int first_pixel = blockIdx.y * BM, first_filter = blockIdx.x * BN;
  const int begin = (int)(blockIdx.z * STEPS / SPLITS), end = (int)((blockIdx.z + 1) * STEPS / SPLITS);

  // This thread fetches piece `piece` of rows row, row + 32, ... of both operands.
  const int row = threadIdx.x / 4, piece = threadIdx.x % 4 * 8;
  Window windows[ROWS_A];
#pragma unroll
  for (int i = 0; i < ROWS_A; ++i) {
    const int pixel = first_pixel + row + i * 32, in_image = pixel % (images.out_h * images.out_w);
    windows[i] = {in_image / images.out_w * STRIDE_H - PAD_H, in_image % images.out_w * STRIDE_W - PAD_W, (i64)(pixel / (images.out_h * images.out_w)) * images.in_h * images.in_w,
                  pixel < images.pixels};
  }
  const auto fetch_step = [&](int step) {
    const int stage = step % STAGES, k = step * BK + piece, tap = k / CHANNELS, channel = k % CHANNELS;
#pragma unroll
    for (int i = 0; i < ROWS_A; ++i) {
      const int h = windows[i].h + tap / TAPS_W * DILATION_H, w = windows[i].w + tap % TAPS_W * DILATION_W;
      const bool there = windows[i].there && k < DEPTH && h >= 0 && h < images.in_h && w >= 0 && w < images.in_w;
      fetch(shared_a + (stage * BM + row + i * 32) * PITCH + piece, there ? x + (windows[i].image + (i64)h * images.in_w + w) * CHANNELS + channel : x, there);
    }
#pragma unroll
    for (int i = 0; i < ROWS_B; ++i) {
      const int filter = first_filter + row + i * 32;
      const bool there = filter < FILTERS && k < DEPTH;
      fetch(shared_b + (stage * BN + row + i * 32) * PITCH + piece, there ? weights + (i64)filter * DEPTH + k : weights, there);
    }
  };

  float sums[TILES_M][TILES_N][4] = {};
#pragma unroll
  for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
    if (begin + ahead < end) fetch_step(begin + ahead);
    asm volatile("cp.async.commit_group;");
  }
  for (int step = begin; step < end; ++step) {
    asm volatile("cp.async.wait_group %0;" : : "n"(STAGES - 2));
    __syncthreads();
    if (step + STAGES - 1 < end) fetch_step(step + STAGES - 1);
    asm volatile("cp.async.commit_group;");
    const T* a = shared_a + (step % STAGES * BM + warp_m * (BM / WARPS_M)) * PITCH;
    const T* b = shared_b + (step % STAGES * BN + warp_n * (BN / WARPS_N)) * PITCH;
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      unsigned rows[TILES_M][4], columns[TILES_N / 2][4];
#pragma unroll
      for (int m = 0; m < TILES_M; ++m) load_matrices(rows[m], a + (m * 16 + lane % 16) * PITCH + k + lane / 16 * 8);
#pragma unroll
      for (int n = 0; n < TILES_N / 2; ++n) load_matrices(columns[n], b + (n * 16 + lane / 16 * 8 + lane % 8) * PITCH + k + lane / 8 % 2 * 8);
#pragma unroll
      for (int m = 0; m < TILES_M; ++m)
#pragma unroll
        for (int n = 0; n < TILES_N; ++n) multiply(sums[m][n], rows[m], columns[n / 2][n % 2 * 2], columns[n / 2][n % 2 * 2 + 1]);
    }
  }

#pragma unroll
  for (int m = 0; m < TILES_M; ++m)
#pragma unroll
    for (int n = 0; n < TILES_N; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int pixel = first_pixel + warp_m * (BM / WARPS_M) + m * 16 + lane / 4 + half * 8;
        const int filter = first_filter + warp_n * (BN / WARPS_N) + n * 8 + lane % 4 * 2;
        if (pixel >= images.pixels || filter >= FILTERS) continue;
        const i64 at = (i64)pixel * FILTERS + filter;
        const float low = sums[m][n][2 * half], high = sums[m][n][2 * half + 1];
        if (SPLITS > 1) {
          *reinterpret_cast<float2*>(partial + (i64)blockIdx.z * images.pixels * FILTERS + at) = make_float2(low, high);
          continue;
        }
        Vector<T, 2> result;
        result.at[0] = convert<T>(finish(low, bias, residual, at, filter));
        result.at[1] = convert<T>(finish(high, bias, residual, at + 1, filter + 1));
        *reinterpret_cast<Vector<T, 2>*>(y + at) = result;
      }
}

// Adds up the parts and finishes; two neighbouring filters per thread.
extern "C" __global__ void implicit_gemm_sum(const float* partial, const float* bias, const T* residual, T* y, int pixels) {
  const i64 at = 2 * ((i64)blockIdx.x * blockDim.x + threadIdx.x), count = (i64)pixels * FILTERS;
  if (at >= count) return;
  float low = 0, high = 0;
#pragma unroll
  for (int i = 0; i < SPLITS; ++i) {
    const float2 part = *reinterpret_cast<const float2*>(partial + i * count + at);
    low += part.x;
    high += part.y;
  }
  const int filter = (int)(at % FILTERS);
  Vector<T, 2> result;
  result.at[0] = convert<T>(finish(low, bias, residual, at, filter));
  result.at[1] = convert<T>(finish(high, bias, residual, at + 1, filter + 1));
  *reinterpret_cast<Vector<T, 2>*>(y + at) = result;
}
