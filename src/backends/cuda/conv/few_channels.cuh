// SPDX-License-Identifier: Apache-2.0
//
// Convolution of images whose channels are too few for a matmul of pixels, as a network's first: planes in, channels last out. A block
// makes TILE_H x TILE_W results for BN filters. The part of the image under them lies in shared memory, four channels of a pixel together;
// a thread of the tensor cores takes a pixel's four at once. In which order a window's elements are added does not matter as long as weights
// have the same; a pixel of a window is the same distance from its first for all.
//
// Before this stand T and MMA_TYPE ("f16" or "bf16"), TILE_H, TILE_W, WARP_TILES (of 16 results that a warp makes), BN (a power of two, 16 or more), CHANNELS, KERNEL_H, KERNEL_W and, per spatial
// axis, STRIDE, DILATION and PAD; the parameters, the epilogue's switches and finish(), and ends.cuh. Weights lie as
// [filter][part of four quads][half of a quad][quad][two channels], quads being numbered [four channels][tap], with zeros.

#define TAPS (KERNEL_H * KERNEL_W)
#define QUADS ((CHANNELS + 3) / 4 * TAPS)
#define PARTS ((QUADS + 3) / 4)
#define PITCH (PARTS * 16 + 8)  // elements per row in shared memory: neighbouring rows in other banks
#define PATCH_H ((TILE_H - 1) * STRIDE_H + (KERNEL_H - 1) * DILATION_H + 1)
#define PATCH_W ((TILE_W - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W + 1)
#define PATCH (PATCH_H * PATCH_W)  // pixels
#define THREADS (TILE_H * TILE_W / WARP_TILES * 2)

static inline void multiply(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
static inline void load_matrices(unsigned* to, const T* row) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at));
}

extern "C" __global__ void __launch_bounds__(THREADS) few_channels(FEW_CHANNELS_PARAMETERS) {
  const Ends ends = {bias, nullptr, residual, numbers, {y, nullptr, nullptr, nullptr}};
  extern __shared__ uint4 memory[];
  T* const filters = reinterpret_cast<T*>(memory);
  uint2* const patch = reinterpret_cast<uint2*>(filters + BN * PITCH);
  __shared__ short places[PARTS * 4];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first_filter = blockIdx.y * BN;
  const int tile = blockIdx.x % images.tiles, image = blockIdx.x / images.tiles;
  const int first_h = tile / images.tiles_w * TILE_H, first_w = tile % images.tiles_w * TILE_W;

  for (int i = threadIdx.x; i < BN * PARTS * 2; i += THREADS) {
    const int row = i / (PARTS * 2), piece = i % (PARTS * 2) * 8;
    const bool there = first_filter + row < FILTERS;
    const unsigned at = (unsigned)__cvta_generic_to_shared(filters + row * PITCH + piece);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(at), "l"(there ? weights + (i64)(first_filter + row) * PARTS * 16 + piece : weights), "r"(there ? 16 : 0));
  }
  for (int quad = threadIdx.x; quad < PARTS * 4; quad += THREADS) {
    const int tap = quad % TAPS;
    places[quad] = quad < QUADS ? quad / TAPS * PATCH + tap / KERNEL_W * DILATION_H * PATCH_W + tap % KERNEL_W * DILATION_W : -1;
  }
  await_operands();
  const T* from = x + (i64)image * CHANNELS * images.in_h * images.in_w;
  const int top = first_h * STRIDE_H - PAD_H, left = first_w * STRIDE_W - PAD_W;
  // A warp takes a row of the patch at a time; all are asked for before any is put down.
  constexpr int kRows = QUADS / TAPS * PATCH_H, kTurns = (kRows + THREADS / 32 - 1) / (THREADS / 32), kPasses = (PATCH_W + 31) / 32;
  typedef Vector<T, 4> Quad;
  Quad quads[kTurns][kPasses];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int row = warp + turn * (THREADS / 32), channel = row / PATCH_H * 4, h = top + row % PATCH_H;
    const i64 plane = (i64)images.in_h * images.in_w;
    const T* const line = from + channel * plane + (i64)h * images.in_w;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int w = left + pass * 32 + lane;
      const bool there = row < kRows && h >= 0 && h < images.in_h && w >= 0 && w < images.in_w && pass * 32 + lane < PATCH_W;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        quads[turn][pass].at[i] = T{};
        if (there && channel + i < CHANNELS) quads[turn][pass].at[i] = line[i * plane + w];
      }
    }
  }
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn)
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int row = warp + turn * (THREADS / 32), column = pass * 32 + lane;
      if (row < kRows && column < PATCH_W) reinterpret_cast<Quad*>(patch)[row * PATCH_W + column] = quads[turn][pass];
    }
  asm volatile("cp.async.wait_all;");
  __syncthreads();

  const uint2* windows[WARP_TILES][2];
#pragma unroll
  for (int m = 0; m < WARP_TILES; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int result = (warp * WARP_TILES + m) * 16 + lane / 4 + half * 8;
      windows[m][half] = patch + result / TILE_W * STRIDE_H * PATCH_W + result % TILE_W * STRIDE_W;
    }
  float sums[WARP_TILES][BN / 8][4] = {};
#pragma unroll 8
  for (int part = 0; part < PARTS; ++part) {
    unsigned columns[BN / 16][4];
#pragma unroll
    for (int n = 0; n < BN / 16; ++n) load_matrices(columns[n], filters + (n * 16 + lane / 16 * 8 + lane % 8) * PITCH + part * 16 + lane / 8 % 2 * 8);
    const int place = places[part * 4 + lane % 4];
#pragma unroll
    for (int m = 0; m < WARP_TILES; ++m) {
      uint2 quad[2] = {};
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if (QUADS % 4 == 0 || place >= 0) quad[half] = windows[m][half][place];
      const unsigned rows[4] = {quad[0].x, quad[1].x, quad[0].y, quad[1].y};
#pragma unroll
      for (int n = 0; n < BN / 8; ++n) multiply(sums[m][n], rows, columns[n / 2][n % 2 * 2], columns[n / 2][n % 2 * 2 + 1]);
    }
  }

  // The sums take the place of filters and patch.
  __syncthreads();
  constexpr int kPitch = BN + 8, kWidth = FILTERS % 4 == 0 ? 4 : FILTERS % 2 == 0 ? 2 : 1;
  float* const put_down = reinterpret_cast<float*>(memory);
#pragma unroll
  for (int m = 0; m < WARP_TILES; ++m)
#pragma unroll
    for (int n = 0; n < BN / 8; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int result = (warp * WARP_TILES + m) * 16 + lane / 4 + half * 8;
        *reinterpret_cast<float2*>(put_down + result * kPitch + n * 8 + lane % 4 * 2) = make_float2(sums[m][n][2 * half], sums[m][n][2 * half + 1]);
      }
  __syncthreads();
  const auto sums_of = [&](float* whole, int result, int column) {
    const Vector<float, kWidth> all = *reinterpret_cast<const Vector<float, kWidth>*>(put_down + result * kPitch + column);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) whole[i] = all.at[i];
  };
  const auto pixel_of = [&](int result) {
    const int h = first_h + result / TILE_W, w = first_w + result % TILE_W;
    return h < images.out_h && w < images.out_w ? (image * images.out_h + h) * images.out_w + w : -1;
  };
  ends.finish_rows<kWidth, BN, THREADS>(0, TILE_H * TILE_W, first_filter, sums_of, pixel_of);
}
