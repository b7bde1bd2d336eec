// SPDX-License-Identifier: Apache-2.0
//
// How groups of warps finish sums whose rows are pixels and whose columns filters. Weights are laid out such that the pairs of columns that a
// thread has of every eight, NEIGHBOURS in all, are filters side by side: 16 bytes of a row of results.
//
// Before this stand CODED and HAS_ZERO, WHOLE_ROWS (whether rows of results begin at multiples of 16 bytes) and warp_groups.cuh.

#define NEIGHBOURS (16 / (int)sizeof(Result))
#define AT_ONCE (4 * NEIGHBOURS)  // filters that a row's four threads have

// Of a constant, which no store changes: the compiler may ask for it long before. `count` is how many of four there are.
static inline void constant_four(const float* from, int count, float* to) {
#if FILTERS % 4 == 0
  asm("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3]) : "l"(from));
#else
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (i < count) to[i] = from[i];
#endif
}

// What the sums of four columns are finished with.
struct Columns {
  float factor[4] = {1, 1, 1, 1}, shift[4] = {}, late[4] = {};
  Columns(const Ends& ends, int filter) {
    if (FILTERS % BN != 0 && filter >= FILTERS) return;
    const int count = FILTERS - filter;
    if (CODED) constant_four(ends.factors + filter, count, factor);
    if (HAS_ZERO) constant_four(ends.factors + FILTERS + filter, count, shift);
    if (HAS_BIAS && LATE_BIAS) constant_four(ends.bias + filter, count, late);
    if (HAS_BIAS && !LATE_BIAS) {
      float bias[4] = {};
      constant_four(ends.bias + filter, count, bias);
#pragma unroll
      for (int i = 0; i < 4; ++i) shift[i] = HAS_ZERO ? shift[i] + bias[i] : bias[i];
    }
  }
};

#if SATURATES
// A float rounded to a whole number, plus the zero point: an addition rounds, and what is beyond its reach stays beyond 8 bits.
static inline int whole_of(float x, const StepNumbers& numbers) {
  const int whole = __float_as_int(x + 12582912.0f) - 0x4b400000 + (int)ENCODED_ZERO;
  return IN_STEPS ? max(whole, (int)(ENCODED_LOW + ENCODED_ZERO)) : whole;
}
static inline unsigned saturated_codes(const float* x, const StepNumbers& numbers) {
  unsigned high, all;
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(whole_of(x[3], numbers)), "r"(whole_of(x[2], numbers)), "r"(0));
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(whole_of(x[1], numbers)), "r"(whole_of(x[0], numbers)), "r"(high));
  return all;
}
#endif

// Four neighbours of a row: pairs of two steps of eight columns.
static inline Vector<Result, 4> finish_four(const Sum* first, const Sum* second, const Columns& columns, const Vector<Added, 4>& added, const StepNumbers& numbers) {
  const Sum sums[4] = {first[0], first[1], second[0], second[1]};
  float other[4] = {}, whole[4];
  if (HAS_RESIDUAL) added_vector(added, other, numbers);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float sum = (float)sums[i] * columns.factor[i] + columns.shift[i];
#if SATURATES
    whole[i] = finish_unrounded(sum, other[i], numbers, columns.late[i]);
#else
    whole[i] = finish(sum, other[i], numbers, columns.late[i]);
#endif
  }
  Vector<Result, 4> result;
#if SATURATES
  *reinterpret_cast<unsigned*>(result.at) = saturated_codes(whole, numbers);
#elif ENCODES
  *reinterpret_cast<unsigned*>(result.at) = FOUR_CODES(whole[0], whole[1], whole[2], whole[3]);
#else
  store_floats<4>(whole, result.at);
#endif
  return result;
}

// A row's NEIGHBOURS, and what is added to them, four by four.
struct alignas(16) Results16 { Vector<Result, 4> four[NEIGHBOURS / 4]; };
struct alignas(16) Others { Vector<Added, 4> four[NEIGHBOURS / 4]; };

// What is added to the neighbours from a column of the tile on, from where it is kept: 16 bytes at a time, or as many as there are.
static inline void load_others(const char* kept, int row, int column, Others& others) {
  constexpr int kBytes = NEIGHBOURS * (int)sizeof(Added), kPiece = kBytes < 16 ? kBytes : 16;
  struct alignas(kPiece) Piece { unsigned words[kPiece / 4]; };
#pragma unroll
  for (int i = 0; i < kBytes; i += kPiece) {
    const int byte = column * (int)sizeof(Added) + i;
    *reinterpret_cast<Piece*>(reinterpret_cast<char*>(&others) + i) = *reinterpret_cast<const Piece*>(kept + place_of_added(row, byte / 16) + byte % 16);
  }
}

// A warp finishes 16 rows of a tile, from `tile_row`, AT_ONCE filters of each at a time. Rows that do not begin at multiples of 16 bytes pass through
// `to`, so that lanes write neighbouring elements.
template <typename PixelOf> static inline void finish_rows_of_warp(const Ends& ends, Sum (*sums)[4], int tile_row, const Tiles& tile, const PixelOf& pixel_of, char* kept, char* to) {
  const int lane = threadIdx.x % 32, row = lane / 4, first_pixel = tile.first_pixel + tile_row, first_filter = tile.first_filter;
  Result* const results = ends.results.of(first_filter / ROW_FILTERS) + first_filter % ROW_FILTERS;
#pragma unroll
  for (int begin = 0; begin < BN; begin += AT_ONCE) {
    const int column = begin + lane % 4 * NEIGHBOURS;
    Others others[2];  // of row and of the eighth behind it
    Results16 found[2];
    if (HAS_RESIDUAL)
#pragma unroll
      for (int i = 0; i < 2; ++i) load_others(kept, tile_row + row + 8 * i, column, others[i]);
#pragma unroll
    for (int four = 0; four < NEIGHBOURS / 4; ++four) {
      const Columns columns(ends, first_filter + column + 4 * four);
      const Sum (*const pairs)[4] = sums + begin / 8 + 2 * four;
#pragma unroll
      for (int i = 0; i < 2; ++i) found[i].four[four] = finish_four(pairs[0] + 2 * i, pairs[1] + 2 * i, columns, others[i].four[four], ends.numbers);
    }
#if WHOLE_ROWS
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (const int pixel = pixel_of(first_pixel + row + 8 * i); pixel >= 0 && (FILTERS % BN == 0 || first_filter + column < FILTERS))
        *reinterpret_cast<uint4*>(results + (i64)pixel * ROW_FILTERS + column) = *reinterpret_cast<const uint4*>(&found[i]);
#else
#pragma unroll
    for (int i = 0; i < 2; ++i) *reinterpret_cast<uint4*>(to + (row + 8 * i) * 64 + lane % 4 * 16) = *reinterpret_cast<const uint4*>(&found[i]);
    __syncwarp();
    for (int i = lane; i < 16 * AT_ONCE; i += 32) {
      const int down = i / AT_ONCE, across = begin + i % AT_ONCE;
      if (const int pixel = pixel_of(first_pixel + down); pixel >= 0 && (FILTERS % BN == 0 || first_filter + across < FILTERS))
        results[(i64)pixel * ROW_FILTERS + across] = reinterpret_cast<const Result*>(to)[i];
    }
    __syncwarp();
#endif
  }
}
