// SPDX-License-Identifier: Apache-2.0
//
// persistent_gemm's tiles and how their operands come: through STAGES places in shared memory, rows of 128 bytes whose pieces of 16 are
// exchanged by the row's number, as the multiplying instruction expects them. Weights lie in memory like that, a step of a tile behind the
// other: each comes as one copy, of which every block of a CLUSTER asks for a part that all of them get. Images come piece by piece; where
// they are rows of a matrix (PLAIN), as one copy, too. What is added to the sums is fetched, too, KEPT tiles ahead.
//
// Before this stand T, Sum, CODED and HAS_ZERO; THROUGH (the bytes through which a warp's results pass) and WHOLE_ROWS (whether rows of results begin at multiples of 16 bytes); GROUPS, PARTS (of 64 rows of the instruction, of a group's tile), BM and BN (a tile's pixels
// and filters), FILTER_BYTES (of a step's weights, a filter), STAGES, KEPT and CLUSTER; CHANNELS, FILTERS, ROW_FILTERS (FILTERS or a multiple
// of BN), PLAIN (a pixel's operands are a row of `rows`, not a window of x), TAPS (64 at most), TAPS_W and, per spatial axis, STRIDE, DILATION and PAD; the
// parameters, the epilogue's switches and finish(), ends.cuh.

#define PIECE (16 / (int)sizeof(T))  // elements of 16 bytes
#define BK (8 * PIECE)               // of a row
#define DEPTH (TAPS * CHANNELS)
#define STEPS ((DEPTH + BK - 1) / BK)
#define TILES_N ((FILTERS + BN - 1) / BN)
#define BAND 8                       // clusters' tiles of one column that follow each other
#define FETCHERS 128                 // threads
#define FINISHERS 8                  // warps
#define ROWS_AT_ONCE (FETCHERS / 8)
#define ROWS (BM / ROWS_AT_ONCE)     // of which a thread fetches a piece per step
#define ROW_BYTES 128
#define ADDED_PIECES (BN * (int)sizeof(Added) / 16)  // of a row of what is added

// Where things lie in shared memory, from a multiple of 1024 bytes.
#define A_AT 0
#define B_AT (A_AT + STAGES * BM * ROW_BYTES)
#define ADDED_AT (B_AT + STAGES * BN * FILTER_BYTES)
#define ENDS_AT (ADDED_AT + (HAS_RESIDUAL ? KEPT * BM * ADDED_PIECES * 16 : 0))
#define FULL_AT (ENDS_AT + FINISHERS * THROUGH)
#define EMPTY_AT (FULL_AT + STAGES * 8)
#define ADDED_FULL_AT (EMPTY_AT + STAGES * 8)
#define ADDED_EMPTY_AT (ADDED_FULL_AT + KEPT * 8)
#define MULTIPLIED_AT (ADDED_EMPTY_AT + KEPT * 8)

static inline void hold(int& sum) { asm volatile("/* held */" : "+r"(sum) : : "memory"); }
static inline void hold(float& sum) { asm volatile("/* held */" : "+f"(sum) : : "memory"); }
// Shared memory as multiply_group() is told of it: rows of 128 bytes, eight by eight.
static inline unsigned long long matrix_at(unsigned place) {
  return (place & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
static inline unsigned place_of(int row, int piece) { return row * ROW_BYTES + (piece ^ row % 8) * 16; }
// Of what is added: neither four pieces of two rows that follow each other nor one piece of eight rows share banks.
static inline unsigned place_of_added(int row, int piece) {
  return (row * ADDED_PIECES + (ADDED_PIECES % 8 == 0 ? piece ^ (row % 2 * 4 + row / 2 % 4) : piece)) * 16;
}

// A barrier in shared memory turns when so many have arrived and all bytes that were announced are there.
static inline void init_barrier(unsigned barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(count) : "memory");
}
static inline void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
}
static inline void announce(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
}
// Arrives when all that this thread fetched has.
static inline void arrive_when_fetched(unsigned barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" : : "r"(barrier) : "memory");
}
static inline bool has_turned(unsigned barrier, unsigned turn) {
  unsigned turned;
  asm volatile("{.reg .pred turned; mbarrier.try_wait.parity.shared::cta.b64 turned, [%1], %2; selp.u32 %0, 1, 0, turned;}" : "=r"(turned) : "r"(barrier), "r"(turn & 1) : "memory");
  return turned != 0;
}
// Waits for turn number `turn`, from 0; -1 was before the first.
static inline void await_turn(unsigned barrier, unsigned turn) {
  while (!has_turned(barrier, turn)) {}
}
#if CLUSTER > 1
static inline void arrive_in_block(unsigned barrier, unsigned rank) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(barrier), "r"(rank));
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" : : "r"(there) : "memory");
}
// Bytes on their way to the same place of all blocks of the cluster, each of which hears of them at its own barrier.
static inline void fetch_for_all(unsigned to, const void* from, int bytes, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" : : "r"(to), "l"(from), "r"(bytes), "r"(barrier), "h"((unsigned short)((1 << CLUSTER) - 1)) : "memory");
}
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
static inline void fetch_for_all(unsigned to, const void* from, int bytes, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" : : "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
#define IN_CLUSTERS
#endif
#if PLAIN
// BM rows from their byte `from` on, on their way to shared memory.
static inline void fetch_rows(const TensorMap& rows, int from, int first_pixel, unsigned to, unsigned barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" : : "r"(to), "l"(&rows), "r"(from), "r"(first_pixel), "r"(barrier) : "memory");
}
#endif
// 16 bytes on their way to shared memory; zeros where there is nothing to read.
static inline void fetch(unsigned to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(there ? 16 : 0));
}

// A block's tiles, one after the other. Blocks of a cluster have neighbouring ones of one column.
struct Tiles {
  int number, clusters, rows, first_pixel, first_filter;
  Tiles(int pixels) : number(blockIdx.x / CLUSTER), clusters(gridDim.x / CLUSTER), rows((pixels + BM * CLUSTER - 1) / (BM * CLUSTER)) { find(); }
  bool any() const { return number < rows * TILES_N; }
  void next() {
    number += clusters;
    find();
  }
  void find() {
    int row = number, column = 0;
    if (TILES_N > 1) {
      const int band = number / (BAND * TILES_N) * BAND, in_band = number % (BAND * TILES_N), height = max(min(BAND, rows - band), 1);
      row = band + in_band % height;
      column = in_band / height;
    }
    first_pixel = (row * CLUSTER + (int)(blockIdx.x % CLUSTER)) * BM;
    first_filter = column * BN;
  }
};

#if !PLAIN
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

static inline void fetch_added(const Added* residual, const Tiles& tile, int pixels, unsigned to) {
  for (int i = threadIdx.x; i < BM * ADDED_PIECES; i += FETCHERS) {
    const int row = i / ADDED_PIECES, piece = i % ADDED_PIECES;
    const int pixel = tile.first_pixel + row, filter = tile.first_filter + piece * 16 / (int)sizeof(Added);
    const bool there = pixel < pixels && filter < FILTERS;
    fetch(to + place_of_added(row, piece), there ? residual + (i64)pixel * FILTERS + filter : residual, there);
  }
}

