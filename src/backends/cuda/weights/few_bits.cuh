// SPDX-License-Identifier: Apache-2.0
//
// Rows of x times weights that are codes of 4 or 8 bits until they are in registers, on tensor cores. Columns of weights are the
// rows of the first operand there, so that eight rows of x already fill the second. A warp multiplies COLUMN_TILES times 16 columns by
// ROW_TILES times 8 rows; WARPS_K warps share the depth and add up through shared memory.
//
// Sixteen of the depth are a unit, what one instruction multiplies; GROUP_UNITS of them share scales and zero points, filled up with
// zeros of x. A lane reads 16 bytes of codes at once: LOAD_UNITS units, SPAN of them side by side in its rows of x, too.
//
// Before this stand T and MMA_TYPE ("f16" or "bf16"), COLUMNS, DEPTH, BLOCK of it in a group, GROUPS, GROUP_UNITS, BITS, SPAN, ALIGNED
// (whether a lane's elements of x are there or not together, at a multiple of their size), ROW_TILES, COLUMN_TILES, WARPS_N, WARPS_K,
// Scale, ZeroPoint, ZEROS, DECODE, number_of(code), Results, place(results, row, column), the parameters, the epilogue's switches and
// finish().

#define LOAD_UNITS (16 / BITS)
#define SPANS (LOAD_UNITS / SPAN)
#define LOADS ((GROUPS * GROUP_UNITS + LOAD_UNITS - 1) / LOAD_UNITS)
#define TILES ((COLUMNS + 15) / 16)
#define THREADS (WARPS_N * WARPS_K * 32)
#define AHEAD 4  // loads on their way
#define SUMS (COLUMN_TILES * ROW_TILES * 4)
#define RUN (4 * SPAN)  // elements of a row of x that a lane multiplies

static inline void multiply(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
static inline unsigned pair_of(T low, T high) { return low.bits | (unsigned)high.bits << 16; }

// What both halves of a pair are lessened by: the bits that made floats of their codes, and the zero point; as a float where
// they are decoded one by one.
#if DECODE == DECODE_FLOATS
typedef float Zero;
#else
typedef unsigned Zero;
#endif

// Pairs 0 to 3 of a lane's codes in a unit, for rows lane / 4 (0 and 2) and 8 below (1 and 3).
#if DECODE == DECODE_NIBBLES
// A code in the lowest bits of a float between two powers of two is that float plus the code.
#if IS_BF16
#define ZERO_BITS 0x4308
static inline unsigned less(unsigned pair, unsigned zero) {
  unsigned result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(pair), "r"(0x3f803f80), "r"(zero ^ 0x80008000));
  return result;
}
#else
#define ZERO_BITS 0x6408
static inline unsigned less(unsigned pair, unsigned zero) {
  unsigned result;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(result) : "r"(pair), "r"(zero));
  return result;
}
#endif
static inline void decode(unsigned* to, const unsigned* words, const Zero* zeros) {
  constexpr unsigned kAbove = (ZERO_BITS & 0xff00) * 0x10001u;
#pragma unroll
  for (int p = 0; p < 4; ++p) to[p] = less((words[0] >> 4 * p & 0x000f000f) | kAbove, zeros[p % 2]);
}
#elif DECODE == DECODE_BYTES
#define ZERO_BITS 0x6480
static inline void decode(unsigned* to, const unsigned* words, const Zero* zeros) {
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    const unsigned pair = __byte_perm(words[p / 2], 0x64646464, p % 2 == 0 ? 0x4140 : 0x4342);
    asm("sub.f16x2 %0, %1, %2;" : "=r"(to[p]) : "r"(pair), "r"(zeros[p % 2]));
  }
}
#elif DECODE == DECODE_E4M3
// Less 2^8, by which scales are more.
static inline void decode(unsigned* to, const unsigned* words, const Zero*) {
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    const unsigned pair = __byte_perm(words[p / 2], 0, p % 2 == 0 ? 0x1404 : 0x3424);
    to[p] = (pair & 0x80008000) | (pair & 0x7f007f00) >> 1;
  }
}
#elif DECODE == DECODE_E5M2
static inline void decode(unsigned* to, const unsigned* words, const Zero*) {
#pragma unroll
  for (int p = 0; p < 4; ++p) to[p] = __byte_perm(words[p / 2], 0, p % 2 == 0 ? 0x1404 : 0x3424);
}
#elif DECODE == DECODE_TABLE
// Both codes of a pair, a byte, at once.
__shared__ unsigned pairs[256];
static inline void decode(unsigned* to, const unsigned* words, const Zero*) {
#pragma unroll
  for (int p = 0; p < 4; ++p) to[p] = pairs[words[0] >> 8 * p & 0xff];
}
#else
static inline void decode(unsigned* to, const unsigned* words, const Zero* zeros) {
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    T values[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const unsigned code = BITS == 4 ? words[0] >> (4 * p + 16 * e) & 0xf : words[p / 2] >> (16 * (p % 2) + 8 * e) & 0xff;
      values[e] = convert<T>(number_of(code) - zeros[p % 2]);
    }
    to[p] = pair_of(values[0], values[1]);
  }
}
#endif

// Of column `at` of a group.
static inline Zero zero_at(const ZeroPoint* zeros, i64 at) {
#if DECODE == DECODE_FLOATS
  return ZEROS ? (float)zeros[at] : 0.0f;
#elif DECODE == DECODE_NIBBLES || DECODE == DECODE_BYTES
  return (unsigned)(ZERO_BITS + (ZEROS ? (int)zeros[at] : 0)) * 0x10001u;
#else
  return 0;
#endif
}

// A lane's elements of a row of x, unit by unit in pairs: those from `local` of a group on.
static inline void read_row(unsigned (*to)[2], const T* row, bool there, int group, int local) {
  const int k = group * BLOCK + local;
#if ALIGNED
  Vector<unsigned, RUN / 2> values = {};
  if (there && k < DEPTH) values = *reinterpret_cast<const Vector<unsigned, RUN / 2>*>(row + k);
#pragma unroll
  for (int i = 0; i < SPAN; ++i) to[i][0] = values.at[2 * i], to[i][1] = values.at[2 * i + 1];
#else
#pragma unroll
  for (int i = 0; i < 2 * SPAN; ++i) {
    T values[2] = {};
#pragma unroll
    for (int e = 0; e < 2; ++e)
      if (there && local + 2 * i + e < BLOCK && k + 2 * i + e < DEPTH) values[e] = row[k + 2 * i + e];
    to[i / 2][i % 2] = pair_of(values[0], values[1]);
  }
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) few_bits(FEW_BITS_PARAMETERS) {
  const Results results = {y0, y1, y2, y3};
  extern __shared__ uint4 memory[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_k = warp % WARPS_K, warp_n = warp / WARPS_K;
  const int first_tile = ((int)blockIdx.x * WARPS_N + warp_n) * COLUMN_TILES, first_row = (int)blockIdx.y * ROW_TILES * 8;
  const int begin = LOADS * warp_k / WARPS_K, end = LOADS * (warp_k + 1) / WARPS_K;
#if DECODE == DECODE_TABLE
  for (int i = threadIdx.x; i < 256; i += THREADS) pairs[i] = pair_of(convert<T>(number_of(i % 16)), convert<T>(number_of(i / 16)));
  __syncthreads();
#endif

  i64 tiles[COLUMN_TILES];  // those behind the last one are computed, and not stored
  uint4 coming[AHEAD][COLUMN_TILES];
#pragma unroll
  for (int t = 0; t < COLUMN_TILES; ++t) tiles[t] = min(first_tile + t, TILES - 1);
  const auto fetch = [&](int slot, int load) {
#pragma unroll
    for (int t = 0; t < COLUMN_TILES; ++t)
      if (load < end) coming[slot][t] = reinterpret_cast<const uint4*>(weights)[(tiles[t] * LOADS + load) * 32 + lane];
  };
#pragma unroll
  for (int i = 0; i < AHEAD; ++i) fetch(i, begin + i);
  await_operands();

  float sums[COLUMN_TILES][ROW_TILES][4] = {}, parts[COLUMN_TILES][ROW_TILES][4] = {};
  const auto add_group = [&](int group) {
#pragma unroll
    for (int t = 0; t < COLUMN_TILES; ++t) {
      const i64 at = (tiles[t] * GROUPS + group) * 16 + lane / 4;
      const float factors[2] = {as_float(scales[at]), as_float(scales[at + 8])};
#pragma unroll
      for (int n = 0; n < ROW_TILES; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sums[t][n][i] += parts[t][n][i] * factors[i / 2];
          parts[t][n][i] = 0;
        }
    }
  };
  const auto multiply_span = [&](int load, int span, const unsigned (*words)[4]) {
    const int unit = load * LOAD_UNITS + span * SPAN, group = GROUPS == 1 ? 0 : unit / GROUP_UNITS;
    if (GROUPS > 1 && group >= GROUPS) return;
    const int local = (unit - group * GROUP_UNITS) * 16 + lane % 4 * RUN;
    unsigned columns[COLUMN_TILES][SPAN][4];
#pragma unroll
    for (int t = 0; t < COLUMN_TILES; ++t) {
      const i64 at = (tiles[t] * GROUPS + group) * 16 + lane / 4;
      const Zero own[2] = {zero_at(zeros, at), zero_at(zeros, at + 8)};
#pragma unroll
      for (int i = 0; i < SPAN; ++i) decode(columns[t][i], words[t] + (span * SPAN + i) * BITS / 4, own);
    }
#pragma unroll
    for (int n = 0; n < ROW_TILES; ++n) {
      const int row = first_row + n * 8 + lane / 4;
      unsigned pieces[SPAN][2];
      read_row(pieces, x + (i64)row * DEPTH, row < rows, group, local);
#pragma unroll
      for (int i = 0; i < SPAN; ++i)
#pragma unroll
        for (int t = 0; t < COLUMN_TILES; ++t) multiply(parts[t][n], columns[t][i], pieces[i]);
    }
    if (GROUPS > 1 && (unit + SPAN) % GROUP_UNITS == 0) add_group(group);
  };
  for (int first = begin; first < end; first += AHEAD)
#pragma unroll
    for (int slot = 0; slot < AHEAD; ++slot) {
      const int load = first + slot;
      if (load >= end) break;
      unsigned words[COLUMN_TILES][4];
#pragma unroll
      for (int t = 0; t < COLUMN_TILES; ++t) {
        const uint4 codes = coming[slot][t];
        words[t][0] = codes.x, words[t][1] = codes.y, words[t][2] = codes.z, words[t][3] = codes.w;
      }
      fetch(slot, load + AHEAD);
#pragma unroll
      for (int span = 0; span < SPANS; ++span) multiply_span(load, span, words);
    }
  // What a warp has of a group whose rest is another's.
  if (begin < end) add_group(GROUPS == 1 ? 0 : min((end * LOAD_UNITS - 1) / GROUP_UNITS, GROUPS - 1));

  const auto store = [&](float sum, int t, int n, int i) {
    const int column = (first_tile + t) * 16 + lane / 4 + i / 2 * 8, row = first_row + n * 8 + lane % 4 * 2 + i % 2;
    if (column >= COLUMNS || row >= rows) return;
    if (HAS_BIAS && !LATE_BIAS) sum += bias[column];
    const float other = HAS_RESIDUAL ? added(residual[(i64)row * COLUMNS + column], numbers) : 0.0f;
    *place(results, row, column) = convert<T>(finish(sum, other, numbers, LATE_BIAS ? bias[column] : 0.0f));
  };
#if WARPS_K == 1
#pragma unroll
  for (int t = 0; t < COLUMN_TILES; ++t)
#pragma unroll
    for (int n = 0; n < ROW_TILES; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) store(sums[t][n][i], t, n, i);
#else
  float* const shared = reinterpret_cast<float*>(memory) + warp_n * WARPS_K * SUMS * 32 + lane;
#pragma unroll
  for (int t = 0; t < COLUMN_TILES; ++t)
#pragma unroll
    for (int n = 0; n < ROW_TILES; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) shared[(warp_k * SUMS + (t * ROW_TILES + n) * 4 + i) * 32] = sums[t][n][i];
  __syncthreads();
  for (int at = warp_k; at < SUMS; at += WARPS_K) {
    float sum = 0;
#pragma unroll
    for (int part = 0; part < WARPS_K; ++part) sum += shared[(part * SUMS + at) * 32];
    store(sum, at / 4 / ROW_TILES, at / 4 % ROW_TILES, at % 4);
  }
#endif
}
