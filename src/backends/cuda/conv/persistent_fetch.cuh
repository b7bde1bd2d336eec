// SPDX-License-Identifier: Apache-2.0
//
// How the operands of persistent_gemm's tiles come: through STAGES places in shared memory, rows of 128 bytes whose pieces of 16 are
// exchanged by the row's number, as the multiplying instruction expects them. Weights lie in memory like that, a step of a tile behind the
// other: each comes as one copy, of which every block of a CLUSTER asks for a part that all of them get. Images come piece by piece; where
// they are rows of a matrix (PLAIN), as one copy, too.
//
// Before this stand CODED and HAS_ZERO; THROUGH (the bytes through which a warp's results pass); GROUPS, PARTS (of 64 rows of the
// instruction, of a group's tile), FILTER_BYTES and FILTER_STRIDE (of a step's weights, a filter, in shared memory and in memory) and STAGES; CHANNELS, ROW_FILTERS (FILTERS or a multiple of BN),
// PLAIN (a pixel's operands are a row of `rows`, not a window of x), TAPS (64 at most), TAPS_W and, per spatial axis, STRIDE, DILATION and PAD;
// the parameters; warp_groups.cuh.

#define PIECE (16 / (int)sizeof(T))  // elements of 16 bytes
#define BK (8 * PIECE)               // of a row
#define DEPTH (TAPS * CHANNELS)
#define STEPS ((DEPTH + BK - 1) / BK)
#define ROWS_AT_ONCE (FETCHERS / 8)
#define ROWS (BM / ROWS_AT_ONCE)     // of which a thread fetches a piece per step

// Where things lie in shared memory, from a multiple of 1024 bytes.
#define A_AT 0
#define B_AT (A_AT + STAGES * BM * ROW_BYTES)
#define ADDED_AT (B_AT + STAGES * BN * FILTER_BYTES)
#define ENDS_AT (ADDED_AT + ADDED_BYTES)
#define FULL_AT (ENDS_AT + FINISHERS * THROUGH)
#define EMPTY_AT (FULL_AT + STAGES * 8)
#define ADDED_FULL_AT (EMPTY_AT + STAGES * 8)
#define ADDED_EMPTY_AT (ADDED_FULL_AT + KEPT * 8)
#define MULTIPLIED_AT (ADDED_EMPTY_AT + KEPT * 8)

static inline unsigned place_of(int row, int piece) { return row * ROW_BYTES + (piece ^ row % 8) * 16; }
#if PLAIN
// BM rows from their byte `from` on, on their way to shared memory.
static inline void fetch_rows(const TensorMap& rows, int from, int first_pixel, unsigned to, unsigned barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" : : "r"(to), "l"(&rows), "r"(from), "r"(first_pixel), "r"(barrier) : "memory");
}
#else
#if TAPS > 32
typedef unsigned long long Taps;
#else
typedef unsigned Taps;
#endif
// A tile's rows of the images, of which a thread fetches the same piece of each.
struct Rows {
  int first[ROWS];    // where a window's first tap lies, in pixels
  Taps inside[ROWS];  // which taps lie inside the image
  Rows(int first_pixel, const Images& images) {
    int pixel = first_pixel + (int)threadIdx.x / 8;
    int image = pixel / (images.out_h * images.out_w), h = pixel % (images.out_h * images.out_w) / images.out_w, w = pixel % images.out_w;
#pragma unroll
    for (int i = 0; i < ROWS; ++i, pixel += ROWS_AT_ONCE) {
      const int top = h * STRIDE_H - PAD_H, left = w * STRIDE_W - PAD_W;
      first[i] = (image * images.in_h + top) * images.in_w + left;
      Taps across = 0;
#pragma unroll
      for (int tap = 0; tap < TAPS_W; ++tap) across |= (Taps)((unsigned)(left + tap * DILATION_W) < (unsigned)images.in_w) << tap;
      inside[i] = 0;
#pragma unroll
      for (int tap = 0; tap < TAPS / TAPS_W; ++tap)
        if ((unsigned)(top + tap * DILATION_H) < (unsigned)images.in_h) inside[i] |= across << tap * TAPS_W;
      if (pixel >= images.pixels) inside[i] = 0;
      for (w += ROWS_AT_ONCE; w >= images.out_w; w -= images.out_w)
        if (++h == images.out_h) h = 0, ++image;
    }
  }
  void fetch_step(const T* x, const Images& images, unsigned around, int step, unsigned to) const {
    const int row = threadIdx.x / 8, piece = threadIdx.x % 8, k = step * BK + piece * PIECE;
    const int tap = TAPS == 1 ? 0 : k / CHANNELS, channel = TAPS == 1 ? k : k % CHANNELS;
    const int ahead = tap / TAPS_W * DILATION_H * images.in_w + tap % TAPS_W * DILATION_W;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      const bool there = k < DEPTH && (inside[i] >> tap & 1) != 0;
      const unsigned place = to + place_of(row + i * ROWS_AT_ONCE, piece);
      if (!HAS_ZERO || there) fetch(place, there ? x + (i64)(first[i] + ahead) * CHANNELS + channel : x, there);
      else asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" : : "r"(place), "r"(around) : "memory");
    }
  }
};
#endif
