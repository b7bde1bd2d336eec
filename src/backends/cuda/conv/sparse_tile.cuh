// SPDX-License-Identifier: Apache-2.0
//
// Weights of 2:4 structure, which the instruction reads as its rows: of four channels the two that may not be zero, and in registers which
// these are. A group's rows are filters, its columns a tile's pixels: BN is 64 * PARTS * GROUPS. A step's weights are rows of 64 bytes, pieces
// of 16 exchanged by half the row's number; behind them, in memory alone, a word for each thread of a part: two bits for each weight.
//
// Before this stand persistent_fetch.cuh, and multiply_half_0() and multiply_half_1(), written for BM columns: of a step's channels, whose
// places two of every four threads hold. T has 16 bits, and so have results and what is added.

#define COLUMNS BM
// None: the instruction reads places from registers, which the next step's would be loaded into. The other group's keep the multipliers busy.
#define IN_FLIGHT 0

static inline void await_steps() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

// matrix_at(), of rows of 64 bytes.
static inline unsigned long long narrow_matrix_at(unsigned place) {
  return (place & 0x3ffff) >> 4 | 1ull << 16 | 32ull << 32 | 2ull << 62;
}

// A thread's words of a step, which are loaded while the step before is multiplied; to the first-level cache they come some steps ahead, for
// a step does not last as long as the way to the second one.
struct Places {
  static constexpr int kAhead = 4, kStride = BN * FILTER_STRIDE / 4;  // steps; words between them
  const unsigned* words;  // of step `step`, the next one
  int step = 0;
  unsigned next[PARTS];
  Places(const void* weights, int first_part) : words(reinterpret_cast<const unsigned*>(reinterpret_cast<const char*>(weights) + BN * FILTER_BYTES) + first_part * 128 + threadIdx.x % 128) {
#pragma unroll
    for (int ahead = 1; ahead < kAhead; ++ahead) prefetch(ahead);
    load();
  }
  void prefetch(int ahead) const {
    if (step + ahead >= STEPS) return;
#pragma unroll
    for (int part = 0; part < PARTS; ++part) asm volatile("prefetch.global.L1 [%0];" : : "l"(words + ahead * kStride + part * 128));
  }
  void load() {
    prefetch(kAhead);
#pragma unroll
    for (int part = 0; part < PARTS; ++part) next[part] = words[part * 128];
    words += kStride;
    ++step;
  }
};

// A step's products. The group's parts begin at `first_part`.
static inline void multiply_step(Sum (*sums)[COLUMNS / 8][4], int first_part, Places& all, bool last, unsigned at, int stage) {
  const unsigned pixels = at + A_AT + stage * BM * ROW_BYTES, filters = at + B_AT + stage * BN * FILTER_BYTES + first_part * 64 * 64;
  unsigned places[PARTS];
#pragma unroll
  for (int part = 0; part < PARTS; ++part) places[part] = all.next[part];
  if (!last) all.load();
#pragma unroll
  for (int part = 0; part < PARTS; ++part) {
    const unsigned rows = filters + part * 64 * 64;
    multiply_half_0(sums[part], narrow_matrix_at(rows), matrix_at(pixels), places[part]);
    multiply_half_1(sums[part], narrow_matrix_at(rows + 32), matrix_at(pixels + 64), places[part]);
  }
}

// Four matrices of eight by eight, of which a lane holds two neighbours of a column; it names a row.
static inline void load_columns(unsigned from, Vector<Added, 2>* pairs) {
  unsigned* const words = reinterpret_cast<unsigned*>(pairs);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) : "r"(from) : "memory");
}
static inline void store_columns(unsigned to, const Vector<Result, 2>* pairs) {
  const unsigned* const words = reinterpret_cast<const unsigned*>(pairs);
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" : : "r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
}

// A warp finishes 16 filters of a tile, from `tile_row`, for 64 pixels at a time; they pass through `to`, 32 bytes of a pixel.
template <typename PixelOf> static inline void finish_rows_of_warp(const Ends& ends, Sum (*sums)[4], int tile_row, const Tiles& tile, const PixelOf& pixel_of, char* kept, char* to) {
  const int lane = threadIdx.x % 32, half = lane / 8 % 2, first_filter = tile.first_filter + tile_row;
  const unsigned kept_at = (unsigned)__cvta_generic_to_shared(kept), to_at = (unsigned)__cvta_generic_to_shared(to);
  const auto place_in_to = [](int pixel, int piece) { return pixel * 32 + (piece ^ pixel / 4 % 2) * 16; };
  float shift[2] = {}, late[2] = {};
#pragma unroll
  for (int i = 0; i < 2; ++i)
    if (const int filter = first_filter + i * 8 + lane / 4; HAS_BIAS && filter < FILTERS) (LATE_BIAS ? late : shift)[i] = ends.bias[filter];
  Result* const results = ends.results.of(first_filter / ROW_FILTERS) + first_filter % ROW_FILTERS;
#pragma unroll
  for (int begin = 0; begin < BM; begin += 64) {
    // All that is read stands before what is written: to the compiler they might be the same.
    Vector<Added, 2> others[8][2];  // of eight pixels each, for either filter
#pragma unroll
    for (int n = 0; n < 8; n += 2)
      if (HAS_RESIDUAL) load_columns(kept_at + place_of_added(begin + (n + lane / 16) * 8 + lane % 8, tile_row / 8 + half), others[n]);
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
      Vector<Result, 2> pairs[4];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int filter = i / 2 % 2;
        const float other = HAS_RESIDUAL ? added(others[n][i / 2].at[i % 2], ends.numbers) : 0.0f;
        pairs[i / 2].at[i % 2] = convert<Result>(finish(sums[begin / 8 + n + i / 4][i % 4] + shift[filter], other, ends.numbers, late[filter]));
      }
      store_columns(to_at + place_in_to((n + lane / 16) * 8 + lane % 8, half), pairs);
    }
    __syncwarp();
#pragma unroll
    for (int i = lane; i < 128; i += 32) {
      const int pixel = pixel_of(tile.first_pixel + begin + i / 2), piece = i % 2;
      if (pixel >= 0 && (FILTERS % BN == 0 || first_filter + piece * 8 < FILTERS))
        *reinterpret_cast<uint4*>(results + (i64)pixel * ROW_FILTERS + piece * 8) = *reinterpret_cast<const uint4*>(to + place_in_to(i / 2, piece));
    }
    __syncwarp();
  }
}
