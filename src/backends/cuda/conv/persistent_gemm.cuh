// SPDX-License-Identifier: Apache-2.0
//
// The same product as implicit_gemm's, for Hopper: as many blocks as the GPU runs at once, each of which goes from tile to tile of the
// result. Four of a block's warps fetch operands, as far ahead as there is room; two groups of four multiply (wgmma), both the same tile
// (GROUPS 2) or each its own, so that one finishes its sums while the other multiplies. Nobody waits for the whole block.
//
// Operands pass through STAGES places in shared memory, rows of 128 bytes whose pieces of 16 are exchanged by the row's number, as the
// instruction expects them. Weights lie in memory like that, a step of a tile behind the other: each comes as one copy, of which every block
// of a CLUSTER asks for a part that all of them get. Images come piece by piece. What is added to the sums is fetched, too, KEPT tiles ahead.
//
// Before this stand T, Sum, CODED, HAS_ZERO and multiply_group(), written for BN columns; GROUPS, PARTS (of 64 rows, of a group's tile),
// BN, STAGES, KEPT and CLUSTER; CHANNELS, FILTERS, ROW_FILTERS (FILTERS or a multiple of BN), PLAIN (a pixel's operands are a row of x),
// TAPS (64 at most), TAPS_W and, per spatial axis, STRIDE, DILATION and PAD; the parameters, the epilogue's switches and finish(), ends.cuh.

#define PIECE (16 / (int)sizeof(T))  // elements of 16 bytes
#define BK (8 * PIECE)               // of a row
#define DEPTH (TAPS * CHANNELS)
#define STEPS ((DEPTH + BK - 1) / BK)
#define BM (64 * PARTS * GROUPS)
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
#define ADDED_AT (B_AT + STAGES * BN * ROW_BYTES)
#define ENDS_AT (ADDED_AT + (HAS_RESIDUAL ? KEPT * BM * ADDED_PIECES * 16 : 0))
#define FULL_AT (ENDS_AT + FINISHERS * 16 * ROW_BYTES)
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
// Where a piece of a row of so many lies: a multiple of four of them.
static inline unsigned place_of(int row, int piece, int pieces) {
  return (row * pieces + (piece ^ row % (pieces % 8 == 0 ? 8 : 4))) * 16;
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
#if PLAIN
#pragma unroll
    for (int i = 0; i < ROWS; ++i, pixel += ROWS_AT_ONCE) {
      first[i] = pixel;
      inside[i] = pixel < images.pixels;
    }
#else
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
#endif
  }
  void fetch_step(const T* x, const Images& images, unsigned around, int step, unsigned to) const {
    const int row = threadIdx.x / 8, piece = threadIdx.x % 8, k = step * BK + piece * PIECE;
    const int tap = TAPS == 1 ? 0 : k / CHANNELS, channel = TAPS == 1 ? k : k % CHANNELS;
    const int ahead = tap / TAPS_W * DILATION_H * images.in_w + tap % TAPS_W * DILATION_W;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      const bool there = k < DEPTH && (inside[i] >> tap & 1) != 0;
      const unsigned place = to + place_of(row + i * ROWS_AT_ONCE, piece, 8);
      if (!HAS_ZERO || there) fetch(place, there ? x + (i64)(first[i] + ahead) * CHANNELS + channel : x, there);
      else asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" : : "r"(place), "r"(around) : "memory");
    }
  }
};

static inline void fetch_added(const Added* residual, const Tiles& tile, int pixels, unsigned to) {
  for (int i = threadIdx.x; i < BM * ADDED_PIECES; i += FETCHERS) {
    const int row = i / ADDED_PIECES, piece = i % ADDED_PIECES;
    const int pixel = tile.first_pixel + row, filter = tile.first_filter + piece * 16 / (int)sizeof(Added);
    const bool there = pixel < pixels && filter < FILTERS;
    fetch(to + place_of(row, piece, ADDED_PIECES), there ? residual + (i64)pixel * FILTERS + filter : residual, there);
  }
}

// A thread's pair of neighbours in its row of so many pieces, at a column that all threads name, is behind the row's begin by this ^ column's byte.
template <typename E> static inline unsigned place_of_pair(int row, int column, int pieces) {
  const int byte = column * (int)sizeof(E);
  return (byte / 16 ^ row % (pieces % 8 == 0 ? 8 : 4)) * 16 | byte % 16;
}
// Two pairs of neighbours as four, and four as two pairs; codes go together, or the compiler takes them one by one.
template <typename E> static inline Vector<E, 4> pairs_of(const char* first, const char* second) {
  Vector<E, 4> four;
  if (sizeof(E) == 1) {
    *reinterpret_cast<unsigned*>(four.at) = *reinterpret_cast<const unsigned short*>(first) | (unsigned)*reinterpret_cast<const unsigned short*>(second) << 16;
  } else {
    *reinterpret_cast<Vector<E, 2>*>(four.at) = *reinterpret_cast<const Vector<E, 2>*>(first);
    *reinterpret_cast<Vector<E, 2>*>(four.at + 2) = *reinterpret_cast<const Vector<E, 2>*>(second);
  }
  return four;
}
template <typename E> static inline void store_pairs(const Vector<E, 4>& four, char* first, char* second) {
  if (sizeof(E) == 1) {
    const unsigned all = *reinterpret_cast<const unsigned*>(four.at);
    *reinterpret_cast<unsigned short*>(first) = (unsigned short)all;
    *reinterpret_cast<unsigned short*>(second) = (unsigned short)(all >> 16);
  } else {
    *reinterpret_cast<Vector<E, 2>*>(first) = *reinterpret_cast<const Vector<E, 2>*>(four.at);
    *reinterpret_cast<Vector<E, 2>*>(second) = *reinterpret_cast<const Vector<E, 2>*>(four.at + 2);
  }
}
// Of a constant, which no store changes: the compiler may ask for it long before.
static inline void constant_pair(const float* from, float* to) {
  asm("ld.global.nc.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "l"(from));
}

// What the sums of two columns are finished with.
struct Columns {
  float factor[2] = {1, 1}, shift[2] = {}, late[2] = {};
  Columns(const Ends& ends, int filter) {
    if (FILTERS % BN != 0 && filter >= FILTERS) return;
    if (CODED) constant_pair(ends.factors + filter, factor);
    if (HAS_ZERO) constant_pair(ends.factors + FILTERS + filter, shift);
    if (HAS_BIAS && LATE_BIAS) constant_pair(ends.bias + filter, late);
    if (HAS_BIAS && !LATE_BIAS) {
      float bias[2];
      constant_pair(ends.bias + filter, bias);
#pragma unroll
      for (int i = 0; i < 2; ++i) shift[i] += bias[i];
    }
  }
};

// Floats rounded to whole numbers, plus `zero`, held to 8 bits: an addition rounds, and what is beyond its reach stays beyond them.
static inline int whole_of(float x, int zero) { return __float_as_int(x + 12582912.0f) - 0x4b400000 + zero; }
static inline unsigned saturated_codes(float a, float b, float c, float d, int zero) {
  unsigned high, all;
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(whole_of(d, zero)), "r"(whole_of(c, zero)), "r"(0));
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(whole_of(b, zero)), "r"(whole_of(a, zero)), "r"(high));
  return all;
}

// Two columns of a row and of the eighth row behind it.
static inline Vector<Result, 4> finish_four(const Sum* sums, const Columns& columns, const Vector<Added, 4>& added, const StepNumbers& numbers) {
  float other[4] = {}, whole[4];
  if (HAS_RESIDUAL) added_vector(added, other, numbers);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float sum = (float)sums[i] * columns.factor[i % 2] + columns.shift[i % 2];
#if SATURATES
    whole[i] = finish_unrounded(sum, other[i], numbers, columns.late[i % 2]);
#else
    whole[i] = finish(sum, other[i], numbers, columns.late[i % 2]);
#endif
  }
  Vector<Result, 4> result;
#if SATURATES
  *reinterpret_cast<unsigned*>(result.at) = saturated_codes(whole[0], whole[1], whole[2], whole[3], (int)ENCODED_ZERO);
#elif ENCODES
  *reinterpret_cast<unsigned*>(result.at) = FOUR_CODES(whole[0], whole[1], whole[2], whole[3]);
#else
  store_floats<4>(whole, result.at);
#endif
  return result;
}

// A warp finishes 16 rows of a tile and writes them, 128 bytes of a row at a time; they pass through `to`, so that all lanes write 16 neighbouring bytes.
static inline void finish_rows_of_warp(const Ends& ends, Sum (*sums)[4], int pixels, int first_pixel, int first_filter, char* kept, int kept_row, char* to) {
  constexpr int kAtOnce = ROW_BYTES / (int)sizeof(Result), kColumns = BN % kAtOnce == 0 ? kAtOnce : 64, kPieces = kColumns * (int)sizeof(Result) / 16;
  const int lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 2;
  const unsigned kept_place = place_of_pair<Added>(row, column, ADDED_PIECES), to_place = place_of_pair<Result>(row, column, 8);
  const char* const kept_begin = kept + (kept_row + row) * ADDED_PIECES * 16;
  char* const to_begin = to + row * ROW_BYTES;
  Result* const results = ends.results.of(first_filter / ROW_FILTERS) + first_filter % ROW_FILTERS;
#pragma unroll
  for (int begin = 0; begin < BN; begin += kColumns) {
    // All that is read stands before what is written: to the compiler they might be the same.
    Vector<Added, 4> added[kColumns / 8];
    if (HAS_RESIDUAL) {
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
        const char* const at = kept_begin + (kept_place ^ (begin + n * 8) * (int)sizeof(Added));
        added[n] = pairs_of<Added>(at, at + 8 * ADDED_PIECES * 16);
      }
    }
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
      char* const at = to_begin + (to_place ^ n * 8 * (int)sizeof(Result));
      const Columns columns(ends, first_filter + begin + n * 8 + column);
      store_pairs(finish_four(sums[begin / 8 + n], columns, added[n], ends.numbers), at, at + 8 * ROW_BYTES);
    }
    __syncwarp();
#pragma unroll
    for (int i = lane; i < 16 * kPieces; i += 32) {
      const int down = i / kPieces, piece = i % kPieces, across = begin + piece * 16 / (int)sizeof(Result);
      if (first_pixel + down < pixels && (FILTERS % BN == 0 || first_filter + across < FILTERS))
        *reinterpret_cast<uint4*>(results + (i64)(first_pixel + down) * ROW_FILTERS + across) = *reinterpret_cast<const uint4*>(to + place_of(down, piece, 8));
    }
    __syncwarp();
  }
}

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(FETCHERS + 32 * FINISHERS, 1) persistent_gemm(PERSISTENT_GEMM_PARAMETERS) {
  extern __shared__ uint4 memory[];
  char* const bytes = reinterpret_cast<char*>(memory) + (1024 - (unsigned)__cvta_generic_to_shared(memory) % 1024) % 1024;
  const unsigned at = (unsigned)__cvta_generic_to_shared(bytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      init_barrier(at + FULL_AT + i * 8, FETCHERS * (HAS_ZERO ? 2 : 1) + 1);
      init_barrier(at + EMPTY_AT + i * 8, GROUPS * CLUSTER);
    }
    for (int i = 0; i < KEPT; ++i) {
      init_barrier(at + ADDED_FULL_AT + i * 8, FETCHERS);
      init_barrier(at + ADDED_EMPTY_AT + i * 8, 4 * GROUPS);
    }
    for (int group = 0; group < 2; ++group) init_barrier(at + MULTIPLIED_AT + group * 8, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
#if CLUSTER > 1
  meet_cluster();
#else
  __syncthreads();
#endif
  Tiles tile(images.pixels);
  unsigned step_of_block = 0;  // of all tiles

  const auto fetch_weights = [&](int step, unsigned count) {
    constexpr int kBytes = BN * ROW_BYTES, kShare = kBytes / CLUSTER;
    const unsigned barrier = at + FULL_AT + count % STAGES * 8, share = blockIdx.x % CLUSTER * kShare;
    announce(barrier, kBytes);
    const i64 from = ((i64)(tile.first_filter / BN) * STEPS + step) * kBytes + share;
    fetch_for_all(at + B_AT + count % STAGES * kBytes + share, reinterpret_cast<const char*>(weights) + from, kShare, barrier);
  };
  // The first weights come while the kernel before this one ends.
  constexpr int kEarly = STEPS < STAGES ? STEPS : STAGES;
  if (threadIdx.x == 0 && tile.any())
    for (int step = 0; step < kEarly; ++step) fetch_weights(step, step);
  await_operands();

  if (threadIdx.x < FETCHERS) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 88;");
    const unsigned around = HAS_ZERO ? ((int)numbers.at[0] & 0xff) * 0x01010101u : 0;  // the operand's zero point
    for (unsigned turn = 0; tile.any(); tile.next(), ++turn) {
      const Rows rows(tile.first_pixel, images);
      for (int step = 0; step < STEPS; ++step, ++step_of_block) {
        const unsigned stage = step_of_block % STAGES, barrier = at + FULL_AT + stage * 8;
        await_turn(at + EMPTY_AT + stage * 8, step_of_block / STAGES - 1);
        if (threadIdx.x == 0 && (turn > 0 || step >= kEarly)) fetch_weights(step, step_of_block);
        rows.fetch_step(x, images, around, step, at + A_AT + stage * BM * ROW_BYTES);
        arrive_when_fetched(barrier);
        if (HAS_ZERO) arrive(barrier);  // what was stored is there, too
      }
      if (HAS_RESIDUAL) {
        await_turn(at + ADDED_EMPTY_AT + turn % KEPT * 8, turn / KEPT - 1);
        fetch_added(residual, tile, images.pixels, at + ADDED_AT + turn % KEPT * (BM * ADDED_PIECES * 16));
        arrive_when_fetched(at + ADDED_FULL_AT + turn % KEPT * 8);
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 208;");
    const Ends ends = {bias, factors, residual, numbers, {y0, y1, y2, y3}};
    const int warp = (threadIdx.x - FETCHERS) / 32, group = warp / 4, group_row = GROUPS == 2 ? group * 64 * PARTS : 0;
    const bool speaks = threadIdx.x % 128 == 0;
    const auto release = [&](unsigned count) {
      if (!speaks) return;
      const unsigned barrier = at + EMPTY_AT + count % STAGES * 8;
#if CLUSTER > 1
      for (int rank = 0; rank < CLUSTER; ++rank) arrive_in_block(barrier, rank);
#else
      arrive(barrier);
#endif
    };
    for (unsigned turn = 0; tile.any(); tile.next(), ++turn) {
      if (GROUPS == 1 && (int)(turn % 2) != group) {
        step_of_block += STEPS;
        continue;
      }
      // A barrier tells one turn from the next, not from the next but one: groups multiply one after the other.
      if (GROUPS == 1 && turn > 0) await_turn(at + MULTIPLIED_AT + (1 - group) * 8, (turn - 1) / 2);
      Sum sums[PARTS][BN / 8][4] = {};
      for (int step = 0; step < STEPS; ++step, ++step_of_block) {
        const unsigned stage = step_of_block % STAGES;
        await_turn(at + FULL_AT + stage * 8, step_of_block / STAGES);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        const unsigned a = at + A_AT + (stage * BM + group_row) * ROW_BYTES, b = at + B_AT + stage * BN * ROW_BYTES;
#pragma unroll
        for (int piece = 0; piece < 8; piece += 2)
#pragma unroll
          for (int part = 0; part < PARTS; ++part) multiply_group(sums[part], matrix_at(a + part * 64 * ROW_BYTES + piece * 16), matrix_at(b + piece * 16));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");  // the step before has read its operands
        if (step > 0) release(step_of_block - 1);
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
      for (int part = 0; part < PARTS; ++part)
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) hold(sums[part][n][i]);
      release(step_of_block - 1);
      if (GROUPS == 1 && speaks) arrive(at + MULTIPLIED_AT + group * 8);

      if (HAS_RESIDUAL) await_turn(at + ADDED_FULL_AT + turn % KEPT * 8, turn / KEPT);
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
        const int row = group_row + part * 64 + warp % 4 * 16;
        finish_rows_of_warp(ends, sums[part], images.pixels, tile.first_pixel + row, tile.first_filter, bytes + ADDED_AT + turn % KEPT * (BM * ADDED_PIECES * 16), row,
                            bytes + ENDS_AT + warp * 16 * ROW_BYTES);
      }
      if (HAS_RESIDUAL && threadIdx.x % 32 == 0) arrive(at + ADDED_EMPTY_AT + turn % KEPT * 8);
    }
  }
#if CLUSTER > 1
  meet_cluster();  // nobody leaves while others write to it
#endif
}
