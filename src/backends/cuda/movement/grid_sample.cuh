// SPDX-License-Identifier: Apache-2.0
//
// GridSample in up to three dimensions. A thread has one point and CHANNELS of an image's channels: where the point lies and what it
// reads is found once. Threads beside each other have points beside each other, or channels where these lie innermost. Positions
// are doubles, as in the reference, where a grid of floats says which pixel is the nearest, and for elements of 32 bits; else floats, which
// know a position as well as a grid of floats does. Before this stand T, Grid, Position, AXES, TAPS (1 the nearest pixel, 2 linear,
// 4 cubic), BORDER, REFLECTION, ALIGN_CORNERS, CHANNELS_LAST, CHANNELS and the parameters.

static inline Position mirrored(Position x, Position low, Position high) {
  const Position range = high - low;
  if (range <= 0) return low;
  const Position away = fmod(fabs(x - low), 2 * range);
  return away <= range ? low + away : high - (away - range);
}
static inline Position within(Position x, int size) { return fmin(fmax(x, (Position)0), (Position)(size - 1)); }
static inline Position padded(Position x, int size) {
  if (BORDER) return within(x, size);
  const Position half = (Position)0.5;
  if (REFLECTION) return ALIGN_CORNERS ? mirrored(x, 0, size - 1) : mirrored(x, -half, size - half);
  return x;
}

// What a position reads along one axis: pixels, -1 for a zero, and what each counts.
struct Taps {
  int pixel[TAPS];
  float weight[TAPS];

  void set(int k, Position at, Position share, int size) {
    weight[k] = (float)share;
    if (at < 0 || at >= size) at = BORDER || REFLECTION ? within(rint(padded(at, size)), size) : -1;
    pixel[k] = share == 0 ? -1 : (int)at;
  }
  Taps(Position grid, int size) {
    Position x = ALIGN_CORNERS ? (grid + 1) / 2 * (size - 1) : ((grid + 1) * size - 1) / 2;
    const Position most = 1e15f;
    x = x != x ? -2 : fmin(fmax(x, -most), most);
    if (TAPS < 4) x = padded(x, size);
#if TAPS == 1
    set(0, rint(x), 1, size);
#else
    const Position low = floor(x), t = x - low;
#if TAPS == 2
    set(0, low, 1 - t, size);
    set(1, low + 1, t, size);
#else
    const Position a = (Position)-0.75;
    const auto near = [a](Position d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [a](Position d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    set(0, low - 1, far(t + 1), size);
    set(1, low, near(t), size);
    set(2, low + 1, near(1 - t), size);
    set(3, low + 2, far(2 - t), size);
#endif
#endif
  }
};

extern "C" __global__ void __launch_bounds__(128) grid_sample(GRID_SAMPLE_PARAMETERS) {
  await_operands();
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= s.items) return;
  const int across = CHANNELS_LAST ? s.groups : s.points, down = CHANNELS_LAST ? s.points : s.groups;
  const int point = CHANNELS_LAST ? item / across % down : item % across;
  const int group = CHANNELS_LAST ? item % across : item / across % down;
  const i64 image = item / ((i64)across * down);

  constexpr int kReads = AXES == 1 ? TAPS : AXES == 2 ? TAPS * TAPS : TAPS * TAPS * TAPS;
  int pixel[kReads];
  float weight[kReads];
  pixel[0] = 0, weight[0] = 1;
  int count = 1;
#pragma unroll
  for (int axis = 0; axis < AXES; ++axis) {  // coordinates run from the last axis to the first
    const Taps taps((Position)as_float(grid[(image * s.points + point) * AXES + AXES - 1 - axis]), s.size[axis]);
#pragma unroll
    for (int i = count - 1; i >= 0; --i) {
      const int before = pixel[i];
      const float share = weight[i];
#pragma unroll
      for (int k = 0; k < TAPS; ++k) {
        pixel[i * TAPS + k] = before < 0 || taps.pixel[k] < 0 ? -1 : before * s.size[axis] + taps.pixel[k];
        weight[i * TAPS + k] = share * taps.weight[k];
      }
    }
    count *= TAPS;
  }

  typedef Vector<T, CHANNELS> Part;
  const int first = group * CHANNELS, step = CHANNELS_LAST ? s.channels : 1;
  const int channels = s.channels - first < CHANNELS ? s.channels - first : CHANNELS;
  const T* from = x + (CHANNELS_LAST ? image * s.area * s.channels + first : (image * s.channels + first) * s.area);
  T* to = y + (CHANNELS_LAST ? (image * s.points + point) * s.channels + first : (image * s.channels + first) * s.points + point);
  float sums[CHANNELS] = {};
  const bool whole = CHANNELS_LAST && s.channels % CHANNELS == 0;
#pragma unroll
  for (int i = 0; i < kReads; ++i) {
    if (pixel[i] < 0) continue;
    const T* const place = from + (i64)pixel[i] * step;
    Part part;
    if (whole) part = *reinterpret_cast<const Part*>(place);
#pragma unroll
    for (int c = 0; c < CHANNELS; ++c)
      if (whole) sums[c] += weight[i] * as_float(part.at[c]);
      else if (c < channels) sums[c] += weight[i] * as_float(place[CHANNELS_LAST ? c : c * (i64)s.area]);
  }
  if (whole) {
    Part part;
#pragma unroll
    for (int c = 0; c < CHANNELS; ++c) part.at[c] = convert<T>(sums[c]);
    *reinterpret_cast<Part*>(to) = part;
    return;
  }
#pragma unroll
  for (int c = 0; c < CHANNELS; ++c)
    if (c < channels) to[CHANNELS_LAST ? c : c * (i64)s.points] = convert<T>(sums[c]);
}
