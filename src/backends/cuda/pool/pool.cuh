// SPDX-License-Identifier: Apache-2.0
//
// Max and average pooling over up to three spatial axes: a thread has a pixel, neighbouring threads neighbouring bytes. Channels-last
// images whose channels come in whole vectors take V of them a thread, others MOST_PLANES planes where there are many. Before this stand T,
// NARROW (whether it has 8 or 16 bits), V, MAXIMUM, CHANNELS_LAST, the window (DEPTH, HEIGHT and WIDTH, and of each its _STRIDE and _DILATION), the
// parameters and support/division.cuh.

// What is compared and added up: floats, of codes integers.
template <typename E> static inline float widened(E element) { return as_float(element); }
static inline int widened(signed char code) { return code; }
static inline float lowest(float) { return -INFINITY_F; }
static inline int lowest(int) { return -128; }
static inline float larger(float a, float b) { return fmaxf(a, b); }
static inline int larger(int a, int b) { return a > b ? a : b; }

typedef decltype(widened(T{})) Total;
static inline Total both(Total a, Total b) { return MAXIMUM ? larger(a, b) : a + b; }
#define NOTHING (MAXIMUM ? lowest(Total{}) : Total{})

// What W neighbours of one pixel come to.
template <int W, bool packed> struct Totals {
  Total at[W];
  Totals() {
#pragma unroll
    for (int i = 0; i < W; ++i) at[i] = NOTHING;
  }
  void add(const T* from) {
    const Vector<T, W> part = *reinterpret_cast<const Vector<T, W>*>(from);
#pragma unroll
    for (int i = 0; i < W; ++i) at[i] = both(at[i], widened(part.at[i]));
  }
  void store(T* to, float share) const {
    Vector<T, W> result;
#pragma unroll
    for (int i = 0; i < W; ++i) result.at[i] = MAXIMUM ? convert<T>(at[i]) : convert<T>(at[i] * share);
    *reinterpret_cast<Vector<T, W>*>(to) = result;
  }
};

#define PACKS (MAXIMUM && NARROW && __CUDA_ARCH__ >= 900)
#if PACKS
// The same of elements of 8 and 16 bits, two maxima an instruction. Of four codes two are the upper halves of numbers of 16 bits as they
// lie, and two when the word is shifted.
static inline unsigned largest(f16, unsigned a, unsigned b) {
  asm("max.f16x2 %0, %1, %2;" : "=r"(a) : "r"(a), "r"(b));
  return a;
}
static inline unsigned largest(bf16, unsigned a, unsigned b) {
  asm("max.bf16x2 %0, %1, %2;" : "=r"(a) : "r"(a), "r"(b));
  return a;
}
static inline unsigned largest(signed char, unsigned a, unsigned b) {
  asm("max.s16x2 %0, %1, %2;" : "=r"(a) : "r"(a), "r"(b));
  return a;
}
static inline unsigned lowest_pair(f16) { return 0xfc00fc00u; }
static inline unsigned lowest_pair(bf16) { return 0xff80ff80u; }
static inline unsigned lowest_pair(signed char) { return 0x80008000u; }
template <int W> struct Totals<W, true> {
  static constexpr int kWords = W * (int)sizeof(T) / 4, kShifts = sizeof(T) == 1 ? 2 : 1;
  unsigned at[kWords][kShifts];
  Totals() {
#pragma unroll
    for (int i = 0; i < kWords; ++i)
#pragma unroll
      for (int s = 0; s < kShifts; ++s) at[i][s] = lowest_pair(T{});
  }
  typedef Vector<unsigned, kWords> Words;
  void add(const T* from) {
    const Words words = *reinterpret_cast<const Words*>(from);
#pragma unroll
    for (int i = 0; i < kWords; ++i)
#pragma unroll
      for (int s = 0; s < kShifts; ++s) at[i][s] = largest(T{}, at[i][s], words.at[i] << 8 * s);
  }
  void store(T* to, float) const {
    Words words;
#pragma unroll
    for (int i = 0; i < kWords; ++i) words.at[i] = kShifts == 1 ? at[i][0] : __byte_perm(at[i][0], at[i][kShifts - 1], 0x3715);
    *reinterpret_cast<Words*>(to) = words;
  }
};
#endif

// Which steps of the window along an axis lie inside of the image, and how many before the end of its padding.
struct Steps {
  int place, first, end, padded;
  Steps(const Window& window, int axis, int at, int kernel, int stride, int dilation) {
    place = at * stride - window.before[axis];
    first = place < 0 ? (dilation - 1 - place) / dilation : 0;
    end = until(window.input[axis], kernel, dilation);
    padded = until(window.input[axis] + window.after[axis], kernel, dilation);
  }
  int until(int size, int kernel, int dilation) const {
    const int count = size > place ? (size - place + dilation - 1) / dilation : 0;
    return count < kernel ? count : kernel;
  }
  bool has(int step) const { return step >= first && step < end; }
  int inside() const { return end > first ? end - first : 0; }
  // Of a maximum steps outside may be others once more: nothing waits for a condition then.
  int held(int step) const { return MAXIMUM ? min(max(step, first), end - 1) : step; }
};

#define UNROLLED(steps) (DEPTH * (i64)HEIGHT * WIDTH <= 32 ? steps : 1)

// A thread makes one pixel of W neighbouring channels in each of PLANES images' planes (channels last: one image). `results` counts
// such groups.
template <int W, int PLANES> static inline void pool_vectors(const T* x, T* y, const Window& window, int channels, int count_pad, int results) {
  typedef Totals<W, PACKS && W * sizeof(T) % 4 == 0> Sums;
  await_operands();
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= results) return;
  unsigned rest = item;
  const int channel = CHANNELS_LAST ? split_off(rest, window.groups) * W : 0;
  int at[3];
#pragma unroll
  for (int axis = 2; axis >= 0; --axis) at[axis] = split_off(rest, window.result[axis]);
  const i64 plane = (i64)window.input[0] * window.input[1] * window.input[2];
  const i64 pixels = (i64)window.result[0].size * window.result[1].size * window.result[2].size;
  const T* const from = CHANNELS_LAST ? x + rest * plane * channels + channel : x + (i64)rest * PLANES * plane;
  const Steps deep(window, 0, at[0], DEPTH, DEPTH_STRIDE, DEPTH_DILATION);
  const Steps down(window, 1, at[1], HEIGHT, HEIGHT_STRIDE, HEIGHT_DILATION);
  const Steps wide(window, 2, at[2], WIDTH, WIDTH_STRIDE, WIDTH_DILATION);
  Sums totals[PLANES];
  const bool any = deep.inside() > 0 && down.inside() > 0 && wide.inside() > 0;
  if (!MAXIMUM || any)
#pragma unroll UNROLLED(DEPTH)
  for (int d = 0; d < DEPTH; ++d)
#pragma unroll UNROLLED(HEIGHT)
    for (int h = 0; h < HEIGHT; ++h) {
      if (!MAXIMUM && (!deep.has(d) || !down.has(h))) continue;
      const i64 first = ((i64)(deep.place + deep.held(d) * DEPTH_DILATION) * window.input[1] + down.place + down.held(h) * HEIGHT_DILATION) * window.input[2] + wide.place;
      const T* lines[PLANES];
#pragma unroll
      for (int p = 0; p < PLANES; ++p) lines[p] = from + p * plane + first * (CHANNELS_LAST ? channels : 1);
#pragma unroll UNROLLED(WIDTH)
      for (int w = 0; w < WIDTH; ++w) {
        if (!MAXIMUM && !wide.has(w)) continue;
#pragma unroll
        for (int p = 0; p < PLANES; ++p) totals[p].add(lines[p] + wide.held(w) * WIDTH_DILATION * (CHANNELS_LAST ? (i64)channels : 1));
      }
    }
  const float share = MAXIMUM ? 1.0f : 1.0f / (count_pad ? deep.padded * down.padded * wide.padded : deep.inside() * down.inside() * wide.inside());
#pragma unroll
  for (int p = 0; p < PLANES; ++p) totals[p].store(CHANNELS_LAST ? y + (i64)item * W : y + ((i64)rest * PLANES + p) * pixels + (item - (i64)rest * pixels) * W, share);
}

extern "C" __global__ void pool(POOL_PARAMETERS) {
  pool_vectors<1, 1>(x, y, window, channels, count_pad, results);
}
#if CHANNELS_LAST
extern "C" __global__ void pool_columns(POOL_PARAMETERS) {
  pool_vectors<V, 1>(x, y, window, channels, count_pad, results);
}
#else
extern "C" __global__ void pool_planes(POOL_PARAMETERS) {
  pool_vectors<1, MOST_PLANES>(x, y, window, channels, count_pad, results);
}
#endif
