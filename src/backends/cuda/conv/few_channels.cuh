// SPDX-License-Identifier: Apache-2.0
//
// Convolution of images whose channels are too few for a matmul of pixels, as a network's first: planes in, channels last out. A block
// makes TILE_H x TILE_W results for BN filters. The part of the image under them lies in shared memory, four channels of a pixel together;
// a thread of the tensor cores takes a pixel's four at once: the two registers of the instruction's second operand (as its first they would
// be put together for each instruction anew). In which order a window's elements are added does not matter as long as weights have the same;
// a pixel of a window is the same distance from its first for all.
//
// Before this stand T and MMA_TYPE ("f16" or "bf16"), TILE_H, TILE_W, WARP_TILES (of 16 results that a warp makes), BN (a power of two, 16 or more), CHANNELS, KERNEL_H, KERNEL_W and, per spatial
// axis, STRIDE, DILATION and PAD; the parameters, the epilogue's switches and finish(), and ends.cuh. Weights lie as
// [filter][part of four quads][half of a quad][quad][two channels], quads being numbered [four channels][tap], with zeros: as they do in
// shared memory.

#define TAPS (KERNEL_H * KERNEL_W)
#define QUADS ((CHANNELS + 3) / 4 * TAPS)
#define PARTS ((QUADS + 3) / 4)
#define PITCH (PARTS * 16 + 8)  // elements per row in shared memory: neighbouring rows in other banks
#define PATCH_H ((TILE_H - 1) * STRIDE_H + (KERNEL_H - 1) * DILATION_H + 1)
#define PATCH_W ((TILE_W - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W + 1)
#define PATCH (PATCH_H * PATCH_W)  // pixels
#define PIXEL_TILES (WARP_TILES * 2)  // of 8 results, which a warp makes
#define THREADS (TILE_H * TILE_W / WARP_TILES * 2)

static inline void multiply(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
static inline void load_matrices(unsigned* to, unsigned at) {
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

#pragma unroll 4
  for (int i = threadIdx.x * 8; i < BN * PITCH; i += THREADS * 8) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(filters + i);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(at), "l"(weights + (i64)first_filter * PITCH + i));
  }
  for (int quad = threadIdx.x; quad < PARTS * 4; quad += THREADS) {
    const int tap = quad % TAPS;
    places[quad] = quad < QUADS ? quad / TAPS * PATCH + tap / KERNEL_W * DILATION_H * PATCH_W + tap % KERNEL_W * DILATION_W : -1;
  }
  await_operands();
  const int top = first_h * STRIDE_H - PAD_H, left = first_w * STRIDE_W - PAD_W + lane;
  const i64 plane = (i64)images.in_h * images.in_w;
  const T* const from = x + image * (CHANNELS * plane) + left;
  // A warp takes a row of the patch at a time; all are asked for before any is put down.
  constexpr int kRows = QUADS / TAPS * PATCH_H, kTurns = (kRows + THREADS / 32 - 1) / (THREADS / 32), kPasses = (PATCH_W + 31) / 32;
  bool across[kPasses];
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) across[pass] = (unsigned)(left + pass * 32) < (unsigned)images.in_w && pass * 32 + lane < PATCH_W;
  typedef Vector<T, 4> Quad;
  Quad quads[kTurns][kPasses] = {};
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int row = warp + turn * (THREADS / 32), channel = QUADS == TAPS ? 0 : row / PATCH_H * 4, h = top + (QUADS == TAPS ? row : row % PATCH_H);
    const bool down = row < kRows && (unsigned)h < (unsigned)images.in_h;
    const T* line = from + channel * plane + (i64)h * images.in_w;
#pragma unroll
    for (int i = 0; i < 4 && i < CHANNELS; ++i, line += plane)
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass)
        if (down && across[pass] && (QUADS == TAPS || channel + i < CHANNELS)) quads[turn][pass].at[i] = line[pass * 32];
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

  // Places of windows' first pixels, and of a lane's filters, in bytes.
  int windows[PIXEL_TILES];
#pragma unroll
  for (int n = 0; n < PIXEL_TILES; ++n) {
    const int result = (warp * PIXEL_TILES + n) * 8 + lane / 4;
    windows[n] = (result / TILE_W * STRIDE_H * PATCH_W + result % TILE_W * STRIDE_W) * (int)sizeof(uint2);
  }
  const unsigned filters_at = (unsigned)__cvta_generic_to_shared(filters + lane % 16 * PITCH + lane / 16 * 8);
  float sums[BN / 16][PIXEL_TILES][4] = {};
  // `all`: whether the part has four quads.
  const auto multiply_part = [&](int part, auto all) {
    const int place = places[part * 4 + lane % 4] * (int)sizeof(uint2);
    uint2 quads[PIXEL_TILES] = {};
#pragma unroll
    for (int n = 0; n < PIXEL_TILES; ++n)
      if (all.value || place >= 0) quads[n] = *reinterpret_cast<const uint2*>(reinterpret_cast<const char*>(patch) + (windows[n] + place));
#pragma unroll
    for (int m = 0; m < BN / 16; ++m) {
      unsigned rows[4];
      load_matrices(rows, filters_at + (m * 16 * PITCH + part * 16) * (int)sizeof(T));
#pragma unroll
      for (int n = 0; n < PIXEL_TILES; ++n) multiply(sums[m][n], rows, quads[n].x, quads[n].y);
    }
  };
  constexpr int kWhole = QUADS / 4, kTogether = kWhole == 0 ? 1 : kWhole <= 16 ? kWhole : 8;
#pragma unroll kTogether
  for (int part = 0; part < kWhole; ++part) multiply_part(part, Known<true>());
  if (PARTS > kWhole) multiply_part(kWhole, Known<false>());

  // The sums take the place of filters and patch.
  __syncthreads();
  constexpr int kPitch = BN + 4, kWidth = FILTERS % 8 == 0 ? 8 : FILTERS % 4 == 0 ? 4 : FILTERS % 2 == 0 ? 2 : 1;
  float* const put_down = reinterpret_cast<float*>(memory);
#pragma unroll
  for (int m = 0; m < BN / 16; ++m)
#pragma unroll
    for (int n = 0; n < PIXEL_TILES; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) put_down[((warp * PIXEL_TILES + n) * 8 + lane % 4 * 2 + i % 2) * kPitch + m * 16 + lane / 4 + i / 2 * 8] = sums[m][n][i];
  __syncthreads();
  const auto sums_of = [&](float* whole, int result, int column) {
    constexpr int kAtOnce = kWidth < 4 ? kWidth : 4;
#pragma unroll
    for (int begin = 0; begin < kWidth; begin += kAtOnce) {
      const Vector<float, kAtOnce> some = *reinterpret_cast<const Vector<float, kAtOnce>*>(put_down + result * kPitch + column + begin);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) whole[begin + i] = some.at[i];
    }
  };
  const auto pixel_of = [&](int result) {
    const int h = first_h + result / TILE_W, w = first_w + result % TILE_W;
    return h < images.out_h && w < images.out_w ? (image * images.out_h + h) * images.out_w + w : -1;
  };
  ends.finish_rows<kWidth, BN, THREADS>(0, TILE_H * TILE_W, first_filter, sums_of, pixel_of);
}
