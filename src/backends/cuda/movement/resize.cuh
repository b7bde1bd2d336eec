// SPDX-License-Identifier: Apache-2.0
//
// Resampling of up to three spatial axes. A thread makes WIDTH results that lie side by side, channels of a pixel (CHANNELS_LAST) or
// pixels of a row, the latter in up to PLANES planes: what they share of the coordinates, which are affine in the result's, is computed
// once. Before this stand T, CHANNELS_LAST, LINEAR, DEEP (there is a third axis), WIDTH, PLANES, NEAREST(x), an index as a double, and
// the parameters.

// Two places along an axis and what each counts.
struct Places {
  int index[2];
  float weight[2];
  Places() : index{0, 0}, weight{1, 0} {}
  Places(const Resize& r, int axis, int result) {
    const double at = result * r.factor[axis] + r.shift[axis];
    const int base = (int)(LINEAR ? floor(at) : NEAREST(at)), last = r.input[axis] - 1;
    index[0] = base < 0 ? 0 : base > last ? last : base;
    index[1] = base < -1 ? 0 : base >= last ? last : base + 1;
    weight[1] = LINEAR ? (float)(at - base) : 0.0f;
    weight[0] = 1.0f - weight[1];
  }
};

static inline float counted(float share, float value) { return share == 0 ? 0.0f : share * value; }

// Of one pixel: the same places for all channels.
static inline void add_pixel(float* sums, const T* from, float share) {
  const Vector<T, WIDTH> part = *reinterpret_cast<const Vector<T, WIDTH>*>(from);
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) sums[k] += counted(share, as_float(part.at[k]));
}

extern "C" __global__ void __launch_bounds__(128) resize(RESIZE_PARAMETERS) {
  constexpr int kEnds = LINEAR ? 2 : 1, kDeepEnds = DEEP ? kEnds : 1;
  await_operands();
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= r.items) return;
  const int across = CHANNELS_LAST ? r.channels / WIDTH : r.result[2] / WIDTH;
  const int first = item % across * WIDTH;
  int rest = item / across;
  const int w = CHANNELS_LAST ? rest % r.result[2] : first;
  if (CHANNELS_LAST) rest /= r.result[2];
  const int h = rest % r.result[1];
  const Places down(r, 1, h);
  rest /= r.result[1];
  Places deep;
  int d = 0;
  if (DEEP) {
    d = rest % r.result[0];
    deep = Places(r, 0, d);
    rest /= r.result[0];
  }
  // The image, or the planes that this thread works on.
  const i64 plane = (i64)r.input[0] * r.input[1] * r.input[2];
  const auto row = [&](int a, int b) { return ((i64)deep.index[a] * r.input[1] + down.index[b]) * r.input[2]; };
#if CHANNELS_LAST
  const T* const from = x + rest * plane * r.channels + first;
  const Places wide(r, 2, w);
  float sums[WIDTH] = {};
#pragma unroll
  for (int a = 0; a < kDeepEnds; ++a)
#pragma unroll
    for (int b = 0; b < kEnds; ++b)
#pragma unroll
      for (int c = 0; c < kEnds; ++c)
        add_pixel(sums, from + (row(a, b) + wide.index[c]) * r.channels, deep.weight[a] * down.weight[b] * wide.weight[c]);
  Vector<T, WIDTH> result;
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) result.at[k] = convert<T>(sums[k]);
  reinterpret_cast<Vector<T, WIDTH>*>(y)[item] = result;
#else
  Places wide[WIDTH];
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) wide[k] = Places(r, 2, w + k);
  T* to = y + (((i64)rest * PLANES * r.result[0] + d) * r.result[1] + h) * r.result[2] + first;
  const T* from = x + rest * PLANES * plane;
  const int planes = r.channels - rest * PLANES < PLANES ? r.channels - rest * PLANES : PLANES;
#pragma unroll 1
  for (int p = 0; p < planes; ++p) {
    float sums[WIDTH] = {};
#pragma unroll
    for (int a = 0; a < kDeepEnds; ++a)
#pragma unroll
      for (int b = 0; b < kEnds; ++b) {
        const T* const line = from + row(a, b);
        const float share = deep.weight[a] * down.weight[b];
#pragma unroll
        for (int k = 0; k < WIDTH; ++k)
#pragma unroll
          for (int c = 0; c < kEnds; ++c) sums[k] += counted(share * wide[k].weight[c], as_float(line[wide[k].index[c]]));
      }
    Vector<T, WIDTH> result;
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) result.at[k] = convert<T>(sums[k]);
    *reinterpret_cast<Vector<T, WIDTH>*>(to) = result;
    from += plane;
    to += (i64)r.result[0] * r.result[1] * r.result[2];
  }
#endif
}
