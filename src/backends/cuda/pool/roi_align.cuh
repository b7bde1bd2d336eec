// SPDX-License-Identifier: Apache-2.0
//
// RoiAlign: a thread per result. Threads beside each other share a bin where channels lie innermost, otherwise a row of bins. A
// region or an image number outside of bounds is brought inside. Before this stand T, Index, LARGEST, HALF_PIXEL, CHANNELS_LAST and
// the parameters.

/// One axis of a region: where its bins begin, and how they are sampled.
struct Bins {
  float start, size;
  int samples;
};
static inline Bins bins_of(float low, float high, int count, float scale, int given) {
  const float offset = HALF_PIXEL ? 0.5f : 0.0f, start = low * scale - offset, extent = high * scale - offset - start;
  Bins bins = {start, (HALF_PIXEL ? extent : fmaxf(extent, 1.0f)) / (float)count, given};
  if (given == 0) bins.samples = bins.size > 0 ? (int)ceilf(fminf(bins.size, 65535.0f)) : 0;
  return bins;
}

/// The two pixels that a sample lies between; outside by more than one pixel there are none.
struct Neighbours {
  int low, high;
  float fraction;
};
static inline bool find_neighbours(const Bins& bins, int bin, int sample, int pixels, Neighbours& found) {
  float at = bins.start + (float)bin * bins.size + ((float)sample + 0.5f) * bins.size / (float)bins.samples;
  if (!(at >= -1.0f && at <= (float)pixels)) return false;
  at = fmaxf(at, 0.0f);
  const int low = (int)at;
  const bool last = low >= pixels - 1;
  found.low = last ? pixels - 1 : low;
  found.high = last ? pixels - 1 : low + 1;
  found.fraction = last ? 0.0f : at - (float)low;
  return true;
}

extern "C" __global__ void roi_align(ROI_ALIGN_PARAMETERS) {
  await_operands();
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= geometry.results) return;
  int rest = item, channel = 0;
  if (CHANNELS_LAST) channel = rest % geometry.channels, rest /= geometry.channels;
  const int column = rest % geometry.columns;
  rest /= geometry.columns;
  const int row = rest % geometry.rows;
  rest /= geometry.rows;
  if (!CHANNELS_LAST) channel = rest % geometry.channels, rest /= geometry.channels;

  const T* box = regions + (i64)rest * 4;
  const Bins across = bins_of(as_float(box[0]), as_float(box[2]), geometry.columns, geometry.scale, geometry.samples),
             down = bins_of(as_float(box[1]), as_float(box[3]), geometry.rows, geometry.scale, geometry.samples);
  i64 image = (i64)images[rest];
  image = image < 0 ? 0 : image >= geometry.count ? geometry.count - 1 : image;
  const i64 plane = (i64)geometry.height * geometry.width;
  const int step = CHANNELS_LAST ? geometry.channels : 1;
  const T* from = CHANNELS_LAST ? x + image * plane * geometry.channels + channel : x + (image * geometry.channels + channel) * plane;
  const auto pixel = [&](int v, int h) { return as_float(from[((i64)v * geometry.width + h) * step]); };

  float total = LARGEST && down.samples * across.samples > 0 ? -INFINITY_F : 0.0f;
  for (int i = 0; i < down.samples; ++i) {
    Neighbours v, h;
    const bool in_rows = find_neighbours(down, row, i, geometry.height, v);
    for (int k = 0; k < across.samples; ++k) {
      if (!in_rows || !find_neighbours(across, column, k, geometry.width, h)) {
        if (LARGEST) total = fmaxf(total, 0.0f);
        continue;
      }
      const float top = 1 - v.fraction, left = 1 - h.fraction;
      const float a = top * left * pixel(v.low, h.low), b = top * h.fraction * pixel(v.low, h.high),
                  c = v.fraction * left * pixel(v.high, h.low), d = v.fraction * h.fraction * pixel(v.high, h.high);
      if (LARGEST) total = fmaxf(total, fmaxf(fmaxf(a, b), fmaxf(c, d)));
      else total += a + b + c + d;
    }
  }
  const int samples = down.samples * across.samples;
  y[item] = convert<T>(LARGEST ? total : total / (float)(samples > 1 ? samples : 1));
}
