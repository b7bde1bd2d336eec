// SPDX-License-Identifier: Apache-2.0
//
// What kernels are made of whose blocks stay and whose groups of four warps multiply (wgmma): barriers in shared memory, copies to it, a block's
// tiles, and what is added to their sums, which is fetched KEPT tiles ahead.
//
// Before this stand T, Sum and the epilogue's switches, ends.cuh; BM and BN (a tile's pixels and filters), KEPT, CLUSTER, FILTERS.

#define FETCHERS 128                 // threads
#define FINISHERS 8                  // warps
#define TILES_N ((FILTERS + BN - 1) / BN)
#define BAND 8                       // clusters' tiles of one column that follow each other
#define ROW_BYTES 128                // of a step's operands
#define ADDED_PIECES (BN * (int)sizeof(Added) / 16)  // of a row of what is added
#define ADDED_BYTES (HAS_RESIDUAL ? KEPT * BM * ADDED_PIECES * 16 : 0)

// Sums are in their registers where this stands.
static inline void hold(int& sum) { asm volatile("/* held */" : "+r"(sum) : : "memory"); }
static inline void hold(float& sum) { asm volatile("/* held */" : "+f"(sum) : : "memory"); }
template <int columns> static inline void hold(Sum (&sums)[columns][4]) {
#pragma unroll
  for (int n = 0; n < columns; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) hold(sums[n][i]);
}
// Shared memory as multiply_group() is told of it: rows of 128 bytes, eight by eight.
static inline unsigned long long matrix_at(unsigned place) {
  return (place & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
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

// `pixel_of` says which pixel of the result a tile's row is, -1 where none.
template <typename PixelOf> static inline void fetch_added(const Added* residual, const Tiles& tile, const PixelOf& pixel_of, int thread, int threads, unsigned to) {
  for (int i = thread; i < BM * ADDED_PIECES; i += threads) {
    const int row = i / ADDED_PIECES, piece = i % ADDED_PIECES;
    const int pixel = pixel_of(tile.first_pixel + row), filter = tile.first_filter + piece * 16 / (int)sizeof(Added);
    const bool there = pixel >= 0 && filter < FILTERS;
    fetch(to + place_of_added(row, piece), there ? residual + (i64)pixel * FILTERS + filter : residual, there);
  }
}
