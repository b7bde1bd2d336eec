// SPDX-License-Identifier: Apache-2.0
//
// The same product as implicit_gemm's, for Hopper: as many blocks as the GPU runs at once, each of which goes from tile to tile of the
// result. Four of a block's warps (one thread, where all are whole copies) fetch operands, as far ahead as there is room; two groups of four multiply (wgmma), both the same tile
// (GROUPS 2) or each its own, so that one finishes its sums while the other multiplies. Nobody waits for the whole block.
//
// Before this stand persistent_fetch.cuh and what a group does with a tile: dense_tile.cuh and dense_ends.cuh, or sparse_tile.cuh.

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(FETCHERS + 32 * FINISHERS, 1) persistent_gemm(PERSISTENT_GEMM_PARAMETERS) {
  extern __shared__ uint4 memory[];
  char* const bytes = reinterpret_cast<char*>(memory) + (1024 - (unsigned)__cvta_generic_to_shared(memory) % 1024) % 1024;
  const unsigned at = (unsigned)__cvta_generic_to_shared(bytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      init_barrier(at + FULL_AT + i * 8, PLAIN ? 1 : FETCHERS * (HAS_ZERO ? 2 : 1) + 1);
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
  const auto pixel_of = [&](int row) { return row < images.pixels ? row : -1; };
  unsigned step_of_block = 0;  // of all tiles

  const auto weights_of = [&](int step) {
    return reinterpret_cast<const char*>(weights) + ((i64)(tile.first_filter / BN) * STEPS + step) * (BN * FILTER_STRIDE);
  };
  const auto fetch_weights = [&](int step, unsigned count) {
    constexpr int kBytes = BN * FILTER_BYTES, kShare = kBytes / CLUSTER;
    const unsigned barrier = at + FULL_AT + count % STAGES * 8, share = blockIdx.x % CLUSTER * kShare;
    announce(barrier, kBytes + (PLAIN ? BM * ROW_BYTES : 0));
    fetch_for_all(at + B_AT + count % STAGES * kBytes + share, weights_of(step) + share, kShare, barrier);
  };
  // The first weights come while the kernel before this one ends.
  constexpr int kEarly = STEPS < STAGES ? STEPS : STAGES;
  if (threadIdx.x == 0 && tile.any())
    for (int step = 0; step < kEarly; ++step) fetch_weights(step, step);
  await_operands();

  if (threadIdx.x < FETCHERS) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 88;");
#if !PLAIN
    const unsigned around = HAS_ZERO ? ((int)numbers.at[0] & 0xff) * 0x01010101u : 0;  // the operand's zero point
#endif
    for (unsigned turn = 0; tile.any(); tile.next(), ++turn) {
#if !PLAIN
      const Rows rows(tile.first_pixel, images);
#endif
      for (int step = 0; step < STEPS; ++step, ++step_of_block) {
        if (PLAIN && threadIdx.x > 0) continue;
        const unsigned stage = step_of_block % STAGES, barrier = at + FULL_AT + stage * 8, to = at + A_AT + stage * BM * ROW_BYTES;
        await_turn(at + EMPTY_AT + stage * 8, step_of_block / STAGES - 1);
        if (threadIdx.x == 0 && (turn > 0 || step >= kEarly)) fetch_weights(step, step_of_block);
#if PLAIN
        fetch_rows(rows, step * ROW_BYTES, tile.first_pixel, to, barrier);
#else
        rows.fetch_step(x, images, around, step, to);
        arrive_when_fetched(barrier);
        if (HAS_ZERO) arrive(barrier);  // what was stored is there, too
#endif
      }
      if (HAS_RESIDUAL) {
        await_turn(at + ADDED_EMPTY_AT + turn % KEPT * 8, turn / KEPT - 1);
        fetch_added(residual, tile, pixel_of, threadIdx.x, FETCHERS, at + ADDED_AT + turn % KEPT * (BM * ADDED_PIECES * 16));
        arrive_when_fetched(at + ADDED_FULL_AT + turn % KEPT * 8);
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 208;");
    const Ends ends = {bias, factors, residual, numbers, {y0, y1, y2, y3}};
    const int warp = (threadIdx.x - FETCHERS) / 32, group = warp / 4, first_part = GROUPS == 2 ? group * PARTS : 0;
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
      Sum sums[PARTS][COLUMNS / 8][4] = {};
      Places places(weights_of(0), first_part);
      for (int step = 0; step < STEPS; ++step, ++step_of_block) {
        const unsigned stage = step_of_block % STAGES;
        await_turn(at + FULL_AT + stage * 8, step_of_block / STAGES);
        if (!PLAIN) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply_step(sums, first_part, places, step + 1 == STEPS, at, stage);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        await_steps();
        if (step >= IN_FLIGHT) release(step_of_block - IN_FLIGHT);
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
      for (int part = 0; part < PARTS; ++part) hold(sums[part]);
      if (IN_FLIGHT > 0) release(step_of_block - 1);
      if (GROUPS == 1 && speaks) arrive(at + MULTIPLIED_AT + group * 8);

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
