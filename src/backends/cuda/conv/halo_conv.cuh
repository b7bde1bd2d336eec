// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of steps of one on Hopper whose images stay in shared memory while they are multiplied by every tap: what a tile's windows
// cover, its pixels and a halo around them, is fetched once, CHUNK bytes of each pixel's channels at a time.
//
// Pixels are numbered with zeros between them, rows of PITCH and images of IMAGE_ROWS rows: then a tap lies the same way from every pixel, and
// a tile's rows for it are those of another tap, further on. Whole rows of images come as the engine that copies tensors writes them, a
// pixel's pieces of 16 bytes exchanged by bits of where it lies; the multiplying instruction knows them wherever its rows begin. Where all
// weights of a block's tiles fit (RESIDENT) they come once, else a step of 128 bytes of each filter after the other. One warp fetches weights, one images,
// two what is added; two groups of four multiply, both the same tile (GROUPS 2) or each its own.
//
// Before this stand CODED and HAS_ZERO, GROUPS and PARTS; CHANNELS, ROW_FILTERS, TAPS, TAPS_W, PAD and DILATION of both axes; OUT_H, OUT_W, PITCH and
// IMAGE_ROWS; CHUNK, MOST_ROWS (that a tile's windows touch), BUFFERS (of chunks of images), STAGES (of weights), RESIDENT and THROUGH; the parameters,
// warp_groups.cuh, multiply_group(), written for BN columns, and dense_ends.cuh.

#define COLUMNS BN
#define CHUNKS (CHANNELS * (int)sizeof(T) / CHUNK)
#define STEP_TAPS (ROW_BYTES / CHUNK)
#define CHUNK_STEPS ((TAPS + STEP_TAPS - 1) / STEP_TAPS)
#define STEPS (CHUNKS * CHUNK_STEPS)
#define IMAGE (IMAGE_ROWS * PITCH)
#define BEFORE (PAD_H * PITCH + PAD_W)  // pixels between the first one of a tile's windows and its own first
#define COVERED (BM + (TAPS / TAPS_W - 1) * DILATION_H * PITCH + (TAPS_W - 1) * DILATION_W)
#define ADDERS (FETCHERS - 64)  // threads that fetch what is added

#define STEP_BYTES (BN * ROW_BYTES)
#define BUFFER_BYTES ((MOST_ROWS * PITCH * CHUNK + 1023) / 1024 * 1024)
#define WEIGHTS_AT 0
#define IMAGES_AT (WEIGHTS_AT + STAGES * STEP_BYTES)
#define ADDED_AT (IMAGES_AT + BUFFERS * BUFFER_BYTES)
#define ENDS_AT (ADDED_AT + ADDED_BYTES)
#define FULL_AT (ENDS_AT + FINISHERS * THROUGH)
#define EMPTY_AT (FULL_AT + STAGES * 8)
#define THERE_AT (EMPTY_AT + STAGES * 8)  // of a chunk of images; and that it has been read
#define READ_AT (THERE_AT + BUFFERS * 8)
#define ADDED_FULL_AT (READ_AT + BUFFERS * 8)
#define ADDED_EMPTY_AT (ADDED_FULL_AT + KEPT * 8)
#define MULTIPLIED_AT (ADDED_EMPTY_AT + KEPT * 8)

// matrix_at(), of pixels of CHUNK bytes.
static inline unsigned long long pixels_at(unsigned place) {
  return (place & 0x3ffff) >> 4 | 1ull << 16 | (unsigned long long)(CHUNK / 2) << 32 | (CHUNK == 128 ? 1ull : CHUNK == 64 ? 2ull : 3ull) << 62;
}

// Where a tile's windows begin: a row of all images, counted from one image before the first, and a pixel of it.
struct Begin {
  unsigned row, pixel;
  Begin(int first_pixel) {
    const unsigned at = first_pixel - BEFORE + IMAGE;
    row = at / PITCH;
    pixel = at % PITCH;
  }
  unsigned rows() const { return (pixel + COVERED + PITCH - 1) / PITCH; }
};

// A row of an image, CHUNK bytes of each pixel, on its way to shared memory; zeros behind it, and where there is no image.
static inline void fetch_row(const TensorMap& x, int chunk, unsigned row, unsigned to, unsigned barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" : : "r"(to), "l"(&x), "r"(chunk * CHUNK), "r"(0), "r"((int)(row % IMAGE_ROWS)), "r"((int)(row / IMAGE_ROWS) - 1), "r"(barrier) : "memory");
}

// The products of some taps, STEP_TAPS of which are a step, with pixels from `pixels` on.
template <int taps> static inline void multiply_taps(Sum (*sums)[COLUMNS / 8][4], int first_tap, unsigned pixels, unsigned filters) {
#pragma unroll
  for (int i = 0; i < taps; ++i) {
    const int tap = first_tap + i, ahead = tap / TAPS_W * DILATION_H * PITCH + tap % TAPS_W * DILATION_W;
#pragma unroll
    for (int byte = 0; byte < CHUNK; byte += 32)
#pragma unroll
      for (int part = 0; part < PARTS; ++part) multiply_group(sums[part], pixels_at(pixels + (part * 64 + ahead) * CHUNK + byte), matrix_at(filters + i * CHUNK + byte));
  }
}

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(FETCHERS + 32 * FINISHERS, 1) halo_conv(HALO_CONV_PARAMETERS) {
  extern __shared__ uint4 memory[];
  char* const bytes = reinterpret_cast<char*>(memory) + (1024 - (unsigned)__cvta_generic_to_shared(memory) % 1024) % 1024;
  const unsigned at = (unsigned)__cvta_generic_to_shared(bytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      init_barrier(at + FULL_AT + i * 8, 1);
      init_barrier(at + EMPTY_AT + i * 8, GROUPS * CLUSTER);
    }
    for (int i = 0; i < BUFFERS; ++i) {
      init_barrier(at + THERE_AT + i * 8, 1);
      init_barrier(at + READ_AT + i * 8, GROUPS);
    }
    for (int i = 0; i < KEPT; ++i) {
      init_barrier(at + ADDED_FULL_AT + i * 8, ADDERS);
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
  const int count = images.pixels / (OUT_H * OUT_W);
  Tiles tile(count * IMAGE);
  const auto pixel_of = [&](int at) {
    const unsigned image = (unsigned)at / IMAGE, row = (unsigned)at % IMAGE / PITCH, column = (unsigned)at % PITCH;
    return image < (unsigned)count && row < OUT_H && column < OUT_W ? (int)((image * OUT_H + row) * OUT_W + column) : -1;
  };

  const auto fetch_weights = [&](int step, unsigned turn) {
    constexpr int kShare = STEP_BYTES / CLUSTER;
    const unsigned barrier = at + FULL_AT + turn % STAGES * 8, share = blockIdx.x % CLUSTER * kShare;
    announce(barrier, STEP_BYTES);
    const i64 from = ((i64)(tile.first_filter / BN) * STEPS + step) * STEP_BYTES + share;
    fetch_for_all(at + WEIGHTS_AT + turn % STAGES * STEP_BYTES + share, reinterpret_cast<const char*>(weights) + from, kShare, barrier);
  };
  // The first weights come while the kernel before this one ends.
  constexpr int kEarly = STEPS < STAGES ? STEPS : STAGES;
  if (threadIdx.x == 0 && tile.any())
    for (int step = 0; step < kEarly; ++step) fetch_weights(step, step);
  await_operands();

  if (threadIdx.x < FETCHERS) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 88;");
    if (threadIdx.x == 0 && !RESIDENT)
      for (unsigned turn = 0; tile.any(); tile.next())
        for (int step = 0; step < STEPS; ++step, ++turn) {
          if (turn < kEarly) continue;
          await_turn(at + EMPTY_AT + turn % STAGES * 8, turn / STAGES - 1);
          fetch_weights(step, turn);
        }
    if (threadIdx.x / 32 == 1)
      for (unsigned chunks = 0; tile.any(); tile.next()) {
        const Begin begin(tile.first_pixel);
        for (int chunk = 0; chunk < CHUNKS; ++chunk, ++chunks) {
          const unsigned buffer = chunks % BUFFERS, barrier = at + THERE_AT + buffer * 8, lane = threadIdx.x % 32;
          await_turn(at + READ_AT + buffer * 8, chunks / BUFFERS - 1);
          if (lane == 0) announce(barrier, begin.rows() * (PITCH * CHUNK));
          __syncwarp();
          for (unsigned row = lane; row < begin.rows(); row += 32) fetch_row(x, chunk, begin.row + row, at + IMAGES_AT + buffer * BUFFER_BYTES + row * (PITCH * CHUNK), barrier);
        }
      }
    if (HAS_RESIDUAL && threadIdx.x >= 64)
      for (unsigned turn = 0; tile.any(); tile.next(), ++turn) {
        await_turn(at + ADDED_EMPTY_AT + turn % KEPT * 8, turn / KEPT - 1);
        fetch_added(residual, tile, pixel_of, threadIdx.x - 64, ADDERS, at + ADDED_AT + turn % KEPT * (BM * ADDED_PIECES * 16));
        arrive_when_fetched(at + ADDED_FULL_AT + turn % KEPT * 8);
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 208;");
    const Ends ends = {bias, factors, residual, numbers, {y0, y1, y2, y3}};
    const int warp = (threadIdx.x - FETCHERS) / 32, group = warp / 4, first_part = GROUPS == 2 ? group * PARTS : 0;
    const bool speaks = threadIdx.x % 128 == 0;
    const auto release_step = [&](unsigned turn) {
      if (RESIDENT || !speaks) return;
      const unsigned barrier = at + EMPTY_AT + turn % STAGES * 8;
#if CLUSTER > 1
      for (int rank = 0; rank < CLUSTER; ++rank) arrive_in_block(barrier, rank);
#else
      arrive(barrier);
#endif
    };
    const auto release_chunk = [&](unsigned chunks) {
      if (speaks) arrive(at + READ_AT + chunks % BUFFERS * 8);
    };
    unsigned step_of_block = 0, chunks = 0;  // of all tiles
    for (unsigned turn = 0; tile.any(); tile.next(), ++turn) {
      if (GROUPS == 1 && (int)(turn % 2) != group) {
        step_of_block += STEPS;
        chunks += CHUNKS;
        continue;
      }
      // A barrier tells one turn from the next, not from the next but one: groups multiply one after the other. Where weights are there for
      // good, nothing is gained by that.
      if (GROUPS == 1 && !RESIDENT && turn > 0) await_turn(at + MULTIPLIED_AT + (1 - group) * 8, (turn - 1) / 2);
      Sum sums[PARTS][COLUMNS / 8][4] = {};
#pragma unroll
      for (int part = 0; part < PARTS; ++part) hold(sums[part]);
      const unsigned first = (Begin(tile.first_pixel).pixel + first_part * 64) * CHUNK;
      for (int chunk = 0; chunk < CHUNKS; ++chunk, ++chunks) {
        await_turn(at + THERE_AT + chunks % BUFFERS * 8, chunks / BUFFERS);
        const unsigned pixels = at + IMAGES_AT + chunks % BUFFERS * BUFFER_BYTES + first;
        const auto multiply = [&](int step, auto taps) {
          const unsigned stage = RESIDENT ? chunk * CHUNK_STEPS + step : step_of_block % STAGES;
          await_turn(at + FULL_AT + stage * 8, RESIDENT ? 0 : step_of_block / STAGES);
          asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
          multiply_taps<decltype(taps)::value>(sums, step * STEP_TAPS, pixels, at + WEIGHTS_AT + stage * STEP_BYTES);
          asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
          asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
          if (chunk > 0 || step > 0) release_step(step_of_block - 1);
          if (chunk > 0 && step == 0) release_chunk(chunks - 1);
          ++step_of_block;
        };
        for (int step = 0; step < TAPS / STEP_TAPS; ++step) multiply(step, Known<STEP_TAPS>{});
        if constexpr (TAPS % STEP_TAPS != 0) multiply(TAPS / STEP_TAPS, Known<TAPS % STEP_TAPS>{});
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
      for (int part = 0; part < PARTS; ++part) hold(sums[part]);
      release_step(step_of_block - 1);
      release_chunk(chunks - 1);
      if (GROUPS == 1 && !RESIDENT && speaks) arrive(at + MULTIPLIED_AT + group * 8);

      if (HAS_RESIDUAL) await_turn(at + ADDED_FULL_AT + turn % KEPT * 8, turn / KEPT);
#pragma unroll
      for (int part = 0; part < PARTS; ++part)
        finish_rows_of_warp(ends, sums[part], (first_part + part) * 64 + warp % 4 * 16, tile, pixel_of, bytes + ADDED_AT + turn % KEPT * (BM * ADDED_PIECES * 16),
                            bytes + ENDS_AT + warp * THROUGH);
      if (HAS_RESIDUAL) __syncwarp();
      if (HAS_RESIDUAL && threadIdx.x % 32 == 0) arrive(at + ADDED_EMPTY_AT + turn % KEPT * 8);
    }
  }
#if CLUSTER > 1
  meet_cluster();  // nobody leaves while others write to it
#endif
}
