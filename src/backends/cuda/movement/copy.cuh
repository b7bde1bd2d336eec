// SPDX-License-Identifier: Apache-2.0
//
// Strided copies: element by element in the order of the destination, several at once, a few that lie side by side on one side alone, or
// in tiles of 32 x 32 (of pairs: 64 x 64) through shared memory where source and destination disagree about which axis is innermost. E is an unsigned
// integer or vector of the elements' size. Before this stand AXES and PARTS (at most, of a walk and of a launch), MOST_EACH (elements of a thread, or one), the parameters and
// support/division.cuh.

// Which side the elements of a piece lie side by side on; on the other they are a step apart.
enum class Beside { both, source, destination };

// EACH pieces of a thread, a block's width apart: what each axis says is read once for all of them.
template <typename E, int EACH, int PIECE = 1, Beside SIDE = Beside::both>
static inline void copy_some(const E* from, E* to, const Walk& walk, unsigned count, unsigned first, i64 step = 0) {
  i64 source[EACH] = {}, target[EACH] = {};
  unsigned rest[EACH];
#pragma unroll
  for (int i = 0; i < EACH; ++i) rest[i] = first + i * blockDim.x;
#pragma unroll
  for (int axis = AXES - 1; axis >= 0; --axis) {
    if (walk.sizes[axis].size == 1) continue;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
      const int at = split_off(rest[i], walk.sizes[axis]);
      source[i] += (i64)at * walk.from[axis];
      target[i] += (i64)at * walk.to[axis];
    }
  }
  typedef Vector<E, PIECE> Piece;
  Piece held[EACH];
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    if (first + i * blockDim.x >= count) continue;
    if (SIDE != Beside::destination) held[i] = *reinterpret_cast<const Piece*>(from + source[i]);
#pragma unroll
    for (int k = 0; k < PIECE; ++k)
      if (SIDE == Beside::destination) held[i].at[k] = from[source[i] + k * step];
  }
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    if (first + i * blockDim.x >= count) continue;
    if (SIDE != Beside::source) *reinterpret_cast<Piece*>(to + target[i]) = held[i];
#pragma unroll
    for (int k = 0; k < PIECE; ++k)
      if (SIDE == Beside::source) to[target[i] + k * step] = held[i].at[k];
  }
}

template <typename E, int PIECE = 1, Beside SIDE = Beside::both>
static inline void copy_element(const E* from, E* to, const Walk& walk, int count, int each, int block, i64 step = 0) {
  const unsigned first = (unsigned)block * blockDim.x * each + threadIdx.x;
  if (first >= (unsigned)count) return;
  if (each == 1) copy_some<E, 1, PIECE, SIDE>(from, to, walk, count, first, step);
  else copy_some<E, MOST_EACH, PIECE, SIDE>(from, to, walk, count, first, step);
}

// The last axis is innermost in the destination, the one before in the source; the others are walked by blockIdx.z.
template <typename E> static inline void find_plane(const E*& from, E*& to, const Walk& walk) {
  unsigned rest = blockIdx.z;
#pragma unroll
  for (int axis = AXES - 3; axis >= 0; --axis) {
    if (walk.sizes[axis].size == 1) continue;
    const int at = split_off(rest, walk.sizes[axis]);
    from += (i64)at * walk.from[axis];
    to += (i64)at * walk.to[axis];
  }
}
// A plane's sizes, a thread's place in a tile, and where the block's begins.
struct TilePlace {
  int n, m, x, y, first_n, first_m;
  TilePlace(const Walk& walk, int side) : n(walk.sizes[AXES - 1].size), m(walk.sizes[AXES - 2].size), x(threadIdx.x % 32), y(threadIdx.x / 32), first_n(blockIdx.x * side), first_m(blockIdx.y * side) {}
};
template <typename E> static inline void copy_tiles(const E* from, E* to, const Walk& walk) {
  __shared__ E tile[32][33];
  find_plane(from, to, walk);
  const auto [n, m, x, y, first_n, first_m] = TilePlace(walk, 32);
  for (int i = y; i < 32; i += 8)
    if (first_m + x < m && first_n + i < n) tile[i][x] = from[(i64)(first_n + i) * walk.from[AXES - 1] + (i64)(first_m + x) * walk.from[AXES - 2]];
  __syncthreads();
  for (int i = y; i < 32; i += 8)
    if (first_m + i < m && first_n + x < n) to[(i64)(first_m + i) * walk.to[AXES - 2] + (first_n + x)] = tile[x][i];
}

// The same of two bytes each, of which a thread reads two and writes two: all that is not innermost is even.
static inline void copy_tiles_of_pairs(const unsigned short* from, unsigned short* to, const Walk& walk) {
  __shared__ unsigned tile[64][33];
  find_plane(from, to, walk);
  const auto [n, m, x, y, first_n, first_m] = TilePlace(walk, 64);
  for (int i = y; i < 64; i += 8)
    if (first_m + 2 * x < m && first_n + i < n) tile[i][x] = *reinterpret_cast<const unsigned*>(from + (i64)(first_n + i) * walk.from[AXES - 1] + (first_m + 2 * x));
  __syncthreads();
  for (int i = y; i < 32; i += 8) {
    if (first_m + 2 * i >= m || first_n + 2 * x >= n) continue;
    const unsigned low = tile[2 * x][i], high = tile[2 * x + 1][i];
    unsigned short* const row = to + (i64)(first_m + 2 * i) * walk.to[AXES - 2] + (first_n + 2 * x);
    *reinterpret_cast<unsigned*>(row) = (low & 0xffff) | high << 16;
    *reinterpret_cast<unsigned*>(row + walk.to[AXES - 2]) = low >> 16 | (high & 0xffff0000);
  }
}

template <typename E> struct Ends {
  const E* from[PARTS];
  E* to[PARTS];
};

template <typename E> static inline void copy_part(const Ends<E>& ends, const Parts& parts) {
  int part = 0;
#pragma unroll
  for (int i = 1; i < PARTS; ++i)
    if (parts.counts[i] != 0 && (int)blockIdx.x >= parts.first_block[i]) part = i;
#pragma unroll
  for (int i = 0; i < PARTS; ++i)
    if (part == i) copy_element(ends.from[i], ends.to[i], parts.walks[i], parts.counts[i], parts.each, blockIdx.x - parts.first_block[i]);
}

#define COPY(E, name)                                                                                                              \
  extern "C" __global__ void elements_##name(ELEMENTS_PARAMETERS(E)) { await_operands(); copy_element(from, to, walk, count, each, blockIdx.x); } \
  extern "C" __global__ void parts_##name(PARTS_PARAMETERS(E)) {                                                               \
    await_operands();                                                                                                              \
    copy_part(Ends<E>{{f0, f1, f2, f3, f4, f5, f6, f7}, {t0, t1, t2, t3, t4, t5, t6, t7}}, parts);                                 \
  }                                                                                                                                \
  extern "C" __global__ void tiles_##name(TILES_PARAMETERS(E)) { await_operands(); copy_tiles(from, to, walk); }

struct alignas(16) Quad { unsigned long long a, b; };
COPY(unsigned char, 1)
COPY(unsigned short, 2)
COPY(unsigned, 4)
COPY(unsigned long long, 8)
COPY(Quad, 16)
extern "C" __global__ void tiles_2_pairs(TILES_PARAMETERS(unsigned short)) {
  await_operands();
  copy_tiles_of_pairs(from, to, walk);
}

#define PIECES(E, name, PIECE)                                                                          \
  extern "C" __global__ void pieces_##name##_##PIECE##_from(PIECES_PARAMETERS(E)) {                     \
    await_operands();                                                                                   \
    copy_element<E, PIECE, Beside::source>(from, to, walk, count, each, blockIdx.x, step);              \
  }                                                                                                     \
  extern "C" __global__ void pieces_##name##_##PIECE##_to(PIECES_PARAMETERS(E)) {                       \
    await_operands();                                                                                   \
    copy_element<E, PIECE, Beside::destination>(from, to, walk, count, each, blockIdx.x, step);         \
  }
PIECES(unsigned char, 1, 2)
PIECES(unsigned char, 1, 4)
PIECES(unsigned short, 2, 2)
PIECES(unsigned short, 2, 4)
PIECES(unsigned, 4, 2)
PIECES(unsigned, 4, 4)
