// SPDX-License-Identifier: Apache-2.0
//
// Max and average pooling over up to three spatial axes: a thread per result, neighbouring threads on neighbouring bytes.
// Channels-last images whose channels come in whole vectors take V of them a thread. Before this stand T, V, MAXIMUM,
// CHANNELS_LAST and the parameters.

// What is compared and added up: floats, of codes integers.
template <typename E> static inline float widened(E element) { return as_float(element); }
static inline int widened(signed char code) { return code; }
static inline float lowest(float) { return -INFINITY_F; }
static inline int lowest(int) { return -128; }
static inline float larger(float a, float b) { return fmaxf(a, b); }
static inline int larger(int a, int b) { return a > b ? a : b; }

// `results` counts vectors of W neighbouring channels.
template <int W> static inline void pool_vectors(const T* x, T* y, const Window& window, int channels, int count_pad, int results) {
  typedef Vector<T, W> Part;
  await_operands();
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= results) return;
  int rest = item, channel = 0, at[3];
  if (CHANNELS_LAST) channel = rest % (channels / W) * W, rest /= channels / W;
#pragma unroll
  for (int axis = 2; axis >= 0; --axis) at[axis] = rest % window.result[axis], rest /= window.result[axis];
  if (!CHANNELS_LAST) channel = rest % channels, rest /= channels;
  const int image = rest, pixel = CHANNELS_LAST ? channels : 1;
  const i64 plane = (i64)window.input[0] * window.input[1] * window.input[2];
  const T* from = CHANNELS_LAST ? x + image * plane * channels + channel : x + ((i64)image * channels + channel) * plane;
  typedef decltype(widened(T{})) Total;
  Total total[W];
#pragma unroll
  for (int i = 0; i < W; ++i) total[i] = MAXIMUM ? lowest(Total{}) : Total{};
  int inside = 0, padded = 0;
  for (int d = 0; d < window.kernel[0]; ++d) {
    const int z = at[0] * window.stride[0] - window.before[0] + d * window.dilation[0];
    for (int h = 0; h < window.kernel[1]; ++h) {
      const int v = at[1] * window.stride[1] - window.before[1] + h * window.dilation[1];
      for (int w = 0; w < window.kernel[2]; ++w) {
        const int u = at[2] * window.stride[2] - window.before[2] + w * window.dilation[2];
        if (z < window.input[0] + window.after[0] && v < window.input[1] + window.after[1] && u < window.input[2] + window.after[2]) ++padded;
        if (z < 0 || z >= window.input[0] || v < 0 || v >= window.input[1] || u < 0 || u >= window.input[2]) continue;
        const Part part = *reinterpret_cast<const Part*>(from + (((i64)z * window.input[1] + v) * window.input[2] + u) * pixel);
#pragma unroll
        for (int i = 0; i < W; ++i) total[i] = MAXIMUM ? larger(total[i], widened(part.at[i])) : total[i] + widened(part.at[i]);
        ++inside;
      }
    }
  }
  Part result;
#pragma unroll
  for (int i = 0; i < W; ++i) result.at[i] = convert<T>(MAXIMUM ? total[i] : total[i] / (count_pad ? padded : inside));
  reinterpret_cast<Part*>(y)[item] = result;
}

extern "C" __global__ void pool(POOL_PARAMETERS) {
  pool_vectors<1>(x, y, window, channels, count_pad, results);
}
#if CHANNELS_LAST
extern "C" __global__ void pool_columns(POOL_PARAMETERS) {
  pool_vectors<V>(x, y, window, channels, count_pad, results);
}
#endif
