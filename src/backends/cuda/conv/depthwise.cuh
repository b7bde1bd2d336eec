// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolution of channels-last images: a thread makes OUT neighbouring results of a row for V neighbouring channels, so
// that an element of the image is read once per row of the filter, V at a time, and used for every result that it touches.
//
// Before this stand T, V, OUT, CHANNELS (a multiple of V), KERNEL_H, KERNEL_W and, per spatial axis, STRIDE, DILATION and PAD; the
// parameters, operand(), the epilogue's switches and finish(). Weights lie as [tap][channel].

#define COLUMNS ((OUT - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W + 1)   // of the image, under OUT results

extern "C" __global__ void __launch_bounds__(128) depthwise(DEPTHWISE_PARAMETERS) {
  typedef Vector<T, V> Part;
  await_operands();
  const int item = blockIdx.x * 128 + threadIdx.x;
  if (item >= images.count) return;
  const int channel = item % (CHANNELS / V) * V;
  int rest = item / (CHANNELS / V);
  const int first = rest % images.strips * OUT;
  rest /= images.strips;
  const int row = rest % images.out_h, image = rest / images.out_h;
  const int left = first * STRIDE_W - PAD_W;
  float sums[OUT][V];
#pragma unroll
  for (int o = 0; o < OUT; ++o)
#pragma unroll
    for (int i = 0; i < V; ++i) sums[o][i] = HAS_BIAS ? bias[channel + i] : 0.0f;
#pragma unroll 1
  for (int kh = 0; kh < KERNEL_H; ++kh) {
    const int h = row * STRIDE_H - PAD_H + kh * DILATION_H;
    if (h < 0 || h >= images.in_h) continue;
    const Operand* from = x + (((i64)image * images.in_h + h) * images.in_w + left) * CHANNELS + channel;
    Part w[KERNEL_W];
#pragma unroll
    for (int kw = 0; kw < KERNEL_W; ++kw) w[kw] = *reinterpret_cast<const Part*>(weights + (kh * KERNEL_W + kw) * CHANNELS + channel);
#pragma unroll
    for (int column = 0; column < COLUMNS; ++column) {
      const bool inside = left + column >= 0 && left + column < images.in_w;
      Vector<Operand, V> part{};
      if (inside) part = *reinterpret_cast<const Vector<Operand, V>*>(from + (i64)column * CHANNELS);
      float values[V];
#pragma unroll
      for (int i = 0; i < V; ++i) values[i] = inside ? operand(part.at[i], numbers) : 0.0f;
#pragma unroll
      for (int kw = 0; kw < KERNEL_W; ++kw) {
        const int ahead = column - kw * DILATION_W;
        if (ahead < 0 || ahead % STRIDE_W != 0 || ahead / STRIDE_W >= OUT) continue;
#pragma unroll
        for (int i = 0; i < V; ++i) sums[ahead / STRIDE_W][i] += values[i] * as_float(w[kw].at[i]);
      }
    }
  }
#pragma unroll
  for (int o = 0; o < OUT; ++o) {
    if (first + o >= images.out_w) continue;
    const i64 at = (((i64)image * images.out_h + row) * images.out_w + first + o) * CHANNELS + channel;
    Vector<Added, V> other;
    Vector<Result, V> result;
    if (HAS_RESIDUAL) other = *reinterpret_cast<const Vector<Added, V>*>(residual + at);
#pragma unroll
    for (int i = 0; i < V; ++i) result.at[i] = convert<Result>(finish(sums[o][i], HAS_RESIDUAL ? added(other.at[i], numbers) : 0.0f, numbers));
    *reinterpret_cast<Vector<Result, V>*>(y + at) = result;
  }
}
