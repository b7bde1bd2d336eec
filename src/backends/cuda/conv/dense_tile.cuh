// SPDX-License-Identifier: Apache-2.0
//
// A group's rows are pixels, its columns a tile's filters: BM is 64 * PARTS * GROUPS. Before this stand persistent_fetch.cuh, and
// multiply_group(), written for BN columns. Behind it, dense_ends.cuh.

#define COLUMNS BN
#define IN_FLIGHT 1  // steps that may not have read their operands yet

static inline void await_steps() { asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); }

struct Places {
  Places(const void*, int) {}
};

// A step's products. The group's parts begin at `first_part`.
static inline void multiply_step(Sum (*sums)[COLUMNS / 8][4], int first_part, Places&, bool, unsigned at, int stage) {
  const unsigned pixels = at + A_AT + (stage * BM + first_part * 64) * ROW_BYTES, filters = at + B_AT + stage * BN * FILTER_BYTES;
#pragma unroll
  for (int piece = 0; piece < 8; piece += 2)
#pragma unroll
    for (int part = 0; part < PARTS; ++part) multiply_group(sums[part], matrix_at(pixels + part * 64 * ROW_BYTES + piece * 16), matrix_at(filters + piece * 16));
}
