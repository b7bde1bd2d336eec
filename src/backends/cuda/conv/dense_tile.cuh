// SPDX-License-Identifier: Apache-2.0
//
// A group's rows are pixels, its columns a tile's filters: BM is 64 * PARTS * GROUPS. Before this stands persistent_fetch.cuh, and
// multiply_group(), written for BN columns.

#define COLUMNS BN
#define IN_FLIGHT 1  // steps that may not have read their operands yet

static inline void await_steps() { asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); }

// A step's products. The group's parts begin at `first_part`.
static inline void multiply_step(Sum (*sums)[COLUMNS / 8][4], int first_part, const char*, unsigned at, int stage) {
  const unsigned pixels = at + A_AT + (stage * BM + first_part * 64) * ROW_BYTES, filters = at + B_AT + stage * BN * FILTER_BYTES;
#pragma unroll
  for (int piece = 0; piece < 8; piece += 2)
#pragma unroll
    for (int part = 0; part < PARTS; ++part) multiply_group(sums[part], matrix_at(pixels + part * 64 * ROW_BYTES + piece * 16), matrix_at(filters + piece * 16));
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
// Of a constant, which no store changes: the compiler may ask for it long before. Of an odd number of filters the last has no neighbour.
static inline void constant_pair(const float* from, int filter, float* to) {
#if FILTERS % 2 == 0
  asm("ld.global.nc.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "l"(from + filter));
#else
  to[0] = from[filter];
  if (filter + 1 < FILTERS) to[1] = from[filter + 1];
#endif
}

// What the sums of two columns are finished with.
struct Columns {
  float factor[2] = {1, 1}, shift[2] = {}, late[2] = {};
  Columns(const Ends& ends, int filter) {
    if (FILTERS % BN != 0 && filter >= FILTERS) return;
    if (CODED) constant_pair(ends.factors, filter, factor);
    if (HAS_ZERO) constant_pair(ends.factors + FILTERS, filter, shift);
    if (HAS_BIAS && LATE_BIAS) constant_pair(ends.bias, filter, late);
    if (HAS_BIAS && !LATE_BIAS) {
      float bias[2] = {};
      constant_pair(ends.bias, filter, bias);
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

template <bool whole> struct Pieces { typedef uint4 Stored; };
template <> struct Pieces<false> { typedef Result Stored; };
typedef Pieces<ROW_FILTERS * sizeof(Result) % 16 == 0>::Stored Stored;

// A warp finishes 16 rows of a tile, from `tile_row`, and writes them, 128 bytes of a row at a time; they pass through `to`, so that all lanes write 16
// neighbouring bytes, or one element each where rows do not begin at such.
static inline void finish_rows_of_warp(const Ends& ends, Sum (*sums)[4], int tile_row, const Tiles& tile, int pixels, char* kept, char* to) {
  constexpr int kAtOnce = ROW_BYTES / (int)sizeof(Result), kColumns = BN % kAtOnce == 0 ? kAtOnce : 64, kPieces = kColumns * (int)sizeof(Result) / 16;
  const int lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 2;
  const unsigned kept_place = place_of_pair<Added>(row, column, ADDED_PIECES), to_place = place_of_pair<Result>(row, column, 8);
  const char* const kept_begin = kept + (tile_row + row) * ADDED_PIECES * 16;
  char* const to_begin = to + row * ROW_BYTES;
  const int first_pixel = tile.first_pixel + tile_row, first_filter = tile.first_filter;
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
    constexpr int kStored = kPieces * 16 / (int)sizeof(Stored), kWide = (int)(sizeof(Stored) / sizeof(Result));  // of a row; elements of each
#pragma unroll
    for (int i = lane; i < 16 * kStored; i += 32) {
      const int down = i / kStored, at = i % kStored * (int)sizeof(Stored), across = begin + i % kStored * kWide;
      if (first_pixel + down < pixels && (FILTERS % BN == 0 || first_filter + across < FILTERS))
        *reinterpret_cast<Stored*>(results + (i64)(first_pixel + down) * ROW_FILTERS + across) = *reinterpret_cast<const Stored*>(to + place_of(down, at / 16, 8) + at % 16);
    }
    __syncwarp();
  }
}

