// SPDX-License-Identifier: Apache-2.0
//
// Resampling of up to three spatial axes. A thread makes WIDTH results that lie side by side, channels of a pixel (CHANNELS_LAST) or
// pixels of a row: what they share of the coordinates, which are affine in the result's, is computed once. Before this stand T,
// CHANNELS_LAST, LINEAR, WIDTH, NEAREST(x), an index as a double, and the parameters.

static inline int inside(double at, int size) { return at < 0 ? 0 : at >= size ? size - 1 : (int)at; }

// Two places along an axis and what each counts.
struct Places {
  int index[2];
  float weight[2];
  Places(const Resize& r, int axis, int result) {
    const double at = result * r.factor[axis] + r.shift[axis], base = LINEAR ? floor(at) : NEAREST(at);
    index[0] = inside(base, r.input[axis]);
    index[1] = inside(base + 1, r.input[axis]);
    weight[1] = LINEAR ? (float)(at - base) : 0.0f;
    weight[0] = 1.0f - weight[1];
  }
};

// Of one pixel: the same places for all channels.
static inline void add_pixel(float* sums, const T* from, float share) {
  if (share == 0) return;
  const Vector<T, WIDTH> part = *reinterpret_cast<const Vector<T, WIDTH>*>(from);
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) sums[k] += share * as_float(part.at[k]);
}

extern "C" __global__ void __launch_bounds__(128) resize(RESIZE_PARAMETERS) {
  await_operands();
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= r.results / WIDTH) return;
  const int across = CHANNELS_LAST ? r.channels / WIDTH : r.result[2] / WIDTH;
  const int first = item % across * WIDTH;
  int rest = item / across;
  const int w = CHANNELS_LAST ? rest % r.result[2] : first;
  if (CHANNELS_LAST) rest /= r.result[2];
  const Places down(r, 1, rest % r.result[1]);
  rest /= r.result[1];
  const Places deep(r, 0, rest % r.result[0]);
  rest /= r.result[0];  // the image, linear the channel of an image
  const i64 plane = (i64)r.input[0] * r.input[1] * r.input[2];
  const T* const from = CHANNELS_LAST ? x + rest * plane * r.channels + first : x + rest * plane;
  float sums[WIDTH] = {};
  const auto row = [&](int a, int b) { return ((i64)deep.index[a] * r.input[1] + down.index[b]) * r.input[2]; };
#if CHANNELS_LAST
  const Places wide(r, 2, w);
#pragma unroll
  for (int corner = 0; corner < 8; ++corner) {
    const int a = corner / 4, b = corner / 2 % 2, c = corner % 2;
    add_pixel(sums, from + (row(a, b) + wide.index[c]) * r.channels, deep.weight[a] * down.weight[b] * wide.weight[c]);
  }
#else
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) {
    const Places wide(r, 2, w + k);
#pragma unroll
    for (int corner = 0; corner < 8; ++corner) {
      const int a = corner / 4, b = corner / 2 % 2, c = corner % 2;
      const float share = deep.weight[a] * down.weight[b] * wide.weight[c];
      if (share != 0) sums[k] += share * as_float(from[row(a, b) + wide.index[c]]);
    }
  }
#endif
  Vector<T, WIDTH> result;
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) result.at[k] = convert<T>(sums[k]);
  reinterpret_cast<Vector<T, WIDTH>*>(y)[item] = result;
}
