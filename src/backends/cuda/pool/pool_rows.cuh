// SPDX-License-Identifier: Apache-2.0
//
// Pooling where a thread makes ROW results that lie side by side. What their windows cover lies side by side, too: whole vectors, LEFT
// elements before them and RIGHT behind. Columns are put together first, and of each window those that it has. Behind pool.cuh.

#define MIDDLE (ROW * WIDTH_STRIDE)
#define RIGHT (WIDTH > LEFT + WIDTH_STRIDE ? WIDTH - LEFT - WIDTH_STRIDE : 0)

// Where a row of the image begins for this thread, and what it reads there.
struct Line {
  Vector<T, ROW> middle[WIDTH_STRIDE];
  T before[LEFT + 1], behind[RIGHT + 1];

  Line(const T* at, int first, int size) {
#pragma unroll
    for (int i = 0; i < WIDTH_STRIDE; ++i) middle[i] = reinterpret_cast<const Vector<T, ROW>*>(at)[i];
#pragma unroll
    for (int i = 0; i < LEFT; ++i)
      if (first + i >= LEFT) before[i] = at[i - LEFT];
#pragma unroll
    for (int i = 0; i < RIGHT; ++i)
      if (first + MIDDLE + i < size) behind[i] = at[MIDDLE + i];
  }

  void add_to(Total* columns, int first, int size) const {
#pragma unroll
    for (int i = 0; i < MIDDLE; ++i) columns[LEFT + i] = both(columns[LEFT + i], widened(middle[i / ROW].at[i % ROW]));
#pragma unroll
    for (int i = 0; i < LEFT; ++i)
      if (first + i >= LEFT) columns[i] = both(columns[i], widened(before[i]));
#pragma unroll
    for (int i = 0; i < RIGHT; ++i)
      if (first + MIDDLE + i < size) columns[LEFT + MIDDLE + i] = both(columns[LEFT + MIDDLE + i], widened(behind[i]));
  }
};

extern "C" __global__ void __launch_bounds__(128) pool_rows(POOL_PARAMETERS) {
  await_operands();
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= results) return;
  unsigned rest = item;
  const int first = split_off(rest, window.groups) * MIDDLE;
  const int h_at = split_off(rest, window.result[1]), d_at = split_off(rest, window.result[0]);
  const Steps deep(window, 0, d_at, DEPTH, DEPTH_STRIDE, DEPTH_DILATION), down(window, 1, h_at, HEIGHT, HEIGHT_STRIDE, HEIGHT_DILATION);
  const int size = window.input[2];
  const T* const from = x + (i64)rest * window.input[0] * window.input[1] * size + first;
  Total columns[LEFT + MIDDLE + RIGHT];
#pragma unroll
  for (int i = 0; i < LEFT + MIDDLE + RIGHT; ++i) columns[i] = NOTHING;
#pragma unroll UNROLLED(DEPTH)
  for (int d = 0; d < DEPTH; ++d) {
    if (!deep.has(d)) continue;
    const int first_row = (deep.place + d * DEPTH_DILATION) * window.input[1];
#pragma unroll UNROLLED(HEIGHT)
    for (int h = 0; h < HEIGHT; ++h) {  // what is read does not depend on whether it counts: so rows are read together
      const int row = down.has(h) ? down.place + h * HEIGHT_DILATION : 0;
      const Line line(from + (i64)(first_row + row) * size, first, size);
      if (down.has(h)) line.add_to(columns, first, size);
    }
  }
#if !MAXIMUM
  const int tall = count_pad ? deep.padded * down.padded : deep.inside() * down.inside();
  const float of_whole = 1.0f / (tall * WIDTH);
  const bool whole = first >= LEFT && first + MIDDLE + RIGHT <= size;
#endif
  Vector<T, ROW> result;
#pragma unroll
  for (int i = 0; i < ROW; ++i) {
    Total total = columns[i * WIDTH_STRIDE];
#pragma unroll
    for (int w = 1; w < WIDTH; ++w) total = both(total, columns[i * WIDTH_STRIDE + w]);
#if MAXIMUM
    result.at[i] = convert<T>(total);
#else
    float share = of_whole;
    if (!whole) {
      const Steps wide(window, 2, first / WIDTH_STRIDE + i, WIDTH, WIDTH_STRIDE, 1);
      share = 1.0f / (tall * (count_pad ? wide.padded : wide.inside()));
    }
    result.at[i] = convert<T>(total * share);
#endif
  }
  reinterpret_cast<Vector<T, ROW>*>(y)[item] = result;
}
