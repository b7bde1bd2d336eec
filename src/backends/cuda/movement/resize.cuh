// SPDX-License-Identifier: Apache-2.0
//
// Resampling of up to three spatial axes. A thread makes WIDTH results that lie side by side, channels of a pixel (CHANNELS_LAST) or
// pixels of a row, the latter in up to PLANES planes: what they share of the coordinates, which are affine in the result's, is computed
// once. Positions are doubles, so that the nearest pixel is the reference's, but floats between elements of 16 bits. Before this stand T, Position,
// CHANNELS_LAST, LINEAR, DEEP (there is a third axis), WIDTH, PLANES, NEAREST(x), an index as a Position, and the parameters and support/division.cuh.

// A place along an axis and the one behind it, and what each counts. Where that counts nothing, or is not there, it is the place once more
// (step 0), and its product is left out: of an infinity it would be none. So nothing is read behind a branch.
struct Places {
  int index = 0, step = 0;
  float weight[2] = {1, 0};
  Places() {}
  Places(const Resize& r, int axis, int result) {
    const Position at = result * r.factor[axis] + r.shift[axis];
    const int base = (int)(LINEAR ? floor(at) : NEAREST(at)), last = r.input[axis] - 1;
    index = base < 0 ? 0 : base > last ? last : base;
    weight[1] = LINEAR && base == index && base < last ? (float)(at - base) : 0.0f;
    weight[0] = 1.0f - weight[1];
    step = weight[1] != 0;
  }
};

// Of one pixel: the same places for all channels.
static inline void add_pixel(float* sums, const T* from, float share) {
  const Vector<T, WIDTH> part = *reinterpret_cast<const Vector<T, WIDTH>*>(from);
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) sums[k] = share != 0 ? sums[k] + share * as_float(part.at[k]) : sums[k];
}

// Of pixels of a row, which lie where `wide` says.
static inline void add_row(float* sums, const T* from, const Places* wide, float share) {
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) {
    const T* const place = from + wide[k].index;
    float value = wide[k].weight[0] * as_float(place[0]);
    if (LINEAR) {
      const float both = value + wide[k].weight[1] * as_float(place[wide[k].step]);
      value = wide[k].step != 0 ? both : value;
    }
    sums[k] = share != 0 ? sums[k] + share * value : sums[k];
  }
}

extern "C" __global__ void __launch_bounds__(128) resize(RESIZE_PARAMETERS) {
  constexpr int kEnds = LINEAR ? 2 : 1, kDeepEnds = DEEP ? kEnds : 1;
  await_operands();
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= r.items) return;
  unsigned rest = item;
  const int first = split_off(rest, r.across) * WIDTH;
  const int w = CHANNELS_LAST ? split_off(rest, r.result[2]) : first, h = split_off(rest, r.result[1]);
  const int d = DEEP ? split_off(rest, r.result[0]) : 0;
  const Places deep = DEEP ? Places(r, 0, d) : Places(), down(r, 1, h);
  // What is left is the image, or the planes that this thread works on.
  const i64 plane = (i64)r.input[0] * r.input[1] * r.input[2];
  const auto row = [&](int a, int b) { return ((i64)(deep.index + a * deep.step) * r.input[1] + down.index + b * down.step) * r.input[2]; };
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
        add_pixel(sums, from + (row(a, b) + wide.index + c * wide.step) * r.channels, deep.weight[a] * down.weight[b] * wide.weight[c]);
  Vector<T, WIDTH> result;
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) result.at[k] = convert<T>(sums[k]);
  reinterpret_cast<Vector<T, WIDTH>*>(y)[item] = result;
#else
  Places wide[WIDTH];
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) wide[k] = Places(r, 2, w + k);
  T* to = y + (((i64)rest * PLANES * r.result[0].size + d) * r.result[1].size + h) * r.result[2].size + first;
  const T* lines[kDeepEnds][kEnds];
#pragma unroll
  for (int a = 0; a < kDeepEnds; ++a)
#pragma unroll
    for (int b = 0; b < kEnds; ++b) lines[a][b] = x + (i64)rest * PLANES * plane + row(a, b);
  const int planes = r.channels - (int)rest * PLANES < PLANES ? r.channels - (int)rest * PLANES : PLANES;
#pragma unroll 1
  for (int p = 0; p < planes; ++p) {
    float sums[WIDTH] = {};
#pragma unroll
    for (int a = 0; a < kDeepEnds; ++a)
#pragma unroll
      for (int b = 0; b < kEnds; ++b) {
        add_row(sums, lines[a][b], wide, deep.weight[a] * down.weight[b]);
        lines[a][b] += plane;
      }
    Vector<T, WIDTH> result;
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) result.at[k] = convert<T>(sums[k]);
    *reinterpret_cast<Vector<T, WIDTH>*>(to) = result;
    to += (i64)r.result[0].size * r.result[1].size * r.result[2].size;
  }
#endif
}
