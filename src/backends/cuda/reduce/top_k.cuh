// SPDX-License-Identifier: Apache-2.0
//
// The k best elements of each line along an axis, best first, and where they were: TopK, ArgMax, ArgMin. An element and its
// place become one number, the larger the better, so that order and ties are one comparison. Before this stand T and the parameters.

typedef unsigned long long Key;

static inline unsigned order_of(float value) {
  if (value != value) return 0xffffffffu;   // not a number counts as largest
  const unsigned bits = __float_as_uint(value + 0.0f);   // -0 is 0
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
static inline unsigned order_of(int value) { return (unsigned)value ^ 0x80000000u; }
static inline unsigned order_of(f16 value) { return order_of(as_float(value)); }
static inline unsigned order_of(bf16 value) { return order_of(as_float(value)); }

// 0 is worse than any element's.
static inline Key key_of(T element, int place, const Lines& lines) {
  const unsigned order = order_of(element), tie = lines.last ? (unsigned)place + 1 : ~(unsigned)place;
  return (Key)(lines.largest ? order : ~order) << 32 | tie;
}
static inline int place_of(Key key, const Lines& lines) { return lines.last ? (int)((unsigned)key - 1) : (int)~(unsigned)key; }

// Best first; `count` is a power of two.
static inline void sort(Key* keys, int count) {
  __syncthreads();
  for (int size = 2; size <= count; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      for (int i = threadIdx.x; i < count / 2; i += blockDim.x) {
        const int low = 2 * i - (i & (step - 1)), high = low + step;
        const Key a = keys[low], b = keys[high];
        if ((a < b) == ((low & size) == 0)) keys[low] = b, keys[high] = a;
      }
      __syncthreads();
    }
}

// A block for each line: what is best so far fills the first half of a buffer, new elements the second; it is sorted again when
// one of them is better than the k-th so far. A line that fits into the buffer is sorted once.
extern "C" __global__ void __launch_bounds__(256) top_k_line(TOP_K_LINE_PARAMETERS) {
  await_operands();
  __shared__ Key keys[4096];
  const i64 line = blockIdx.x, outer = line / lines.inner, column = line % lines.inner;
  x += outer * lines.n * lines.inner + column;
  const auto key_at = [&](int i) { return i < lines.n ? key_of(x[(i64)i * lines.inner], i, lines) : Key(0); };
  if (lines.k == 1) {
    Key best = 0;
    for (int i = threadIdx.x; i < lines.n; i += blockDim.x) {
      const Key key = key_at(i);
      best = key > best ? key : best;
    }
    best = block_max(best, keys + 1);
    if (threadIdx.x == 0) keys[0] = best;
  } else {
    for (int i = threadIdx.x; i < lines.buffer; i += blockDim.x) keys[i] = key_at(i);
    sort(keys, lines.buffer);
    const int half = lines.buffer / 2;
    for (int start = lines.buffer; start < lines.n; start += half) {
      int better = 0;
      for (int i = threadIdx.x; i < half; i += blockDim.x) {
        const Key key = key_at(start + i);
        keys[half + i] = key;
        better |= key > keys[lines.k - 1];
      }
      if (__syncthreads_or(better)) sort(keys, lines.buffer);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < lines.k; i += blockDim.x) {
    const int place = place_of(keys[i], lines);
    const i64 to = (outer * lines.k + i) * lines.inner + column;
    if (values) values[to] = x[(i64)place * lines.inner];
    if (places) places[to] = place;
  }
}

// A thread for each line, for lines that lie beside each other and one element of each.
extern "C" __global__ void __launch_bounds__(256) top_k_beside(TOP_K_BESIDE_PARAMETERS) {
  await_operands();
  const i64 line = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= count) return;
  x += line / lines.inner * lines.n * lines.inner + line % lines.inner;
  Key best = 0;
  for (int i = 0; i < lines.n; ++i) {
    const Key key = key_of(x[(i64)i * lines.inner], i, lines);
    best = key > best ? key : best;
  }
  const int place = place_of(best, lines);
  if (values) values[line] = x[(i64)place * lines.inner];
  if (places) places[line] = place;
}
