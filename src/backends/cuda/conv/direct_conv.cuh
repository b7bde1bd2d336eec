// SPDX-License-Identifier: Apache-2.0
//
// Convolution and transposed convolution as they are defined: a thread per result. The fastest there is for depthwise filters,
// which read every element once per tap whatever one does; elsewhere what is left when no library serves. Before this stand T,
// CHANNELS_LAST, TRANSPOSED, HAS_BIAS, HAS_RESIDUAL, operand(), added(), finish() and the parameters.

// The input coordinate that tap k of result coordinate `at` reads, or -1.
static inline int source_of(const Conv& c, int axis, int at, int k) {
  if (TRANSPOSED) {
    const int shifted = at + c.before[axis] - k * c.dilation[axis];
    if (shifted < 0 || shifted % c.stride[axis] != 0) return -1;
    const int from = shifted / c.stride[axis];
    return from < c.input[axis] ? from : -1;
  }
  const int from = at * c.stride[axis] - c.before[axis] + k * c.dilation[axis];
  return from >= 0 && from < c.input[axis] ? from : -1;
}

// Weights lie as [filter][tap][channel of the group], so that a thread reads them in order.
extern "C" __global__ void direct_conv(DIRECT_CONV_PARAMETERS) {
  await_operands();
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= c.results) return;
  int rest = item, filter = 0, at[3];
  if (CHANNELS_LAST) filter = rest % c.filters, rest /= c.filters;
#pragma unroll
  for (int axis = 2; axis >= 0; --axis) at[axis] = rest % c.result[axis], rest /= c.result[axis];
  if (!CHANNELS_LAST) filter = rest % c.filters, rest /= c.filters;
  const i64 plane = (i64)c.input[0] * c.input[1] * c.input[2];
  const i64 step = CHANNELS_LAST ? 1 : plane, pixel = CHANNELS_LAST ? c.channels : 1;
  const Operand* from = x + (i64)rest * plane * c.channels + (i64)(filter / c.group_filters) * c.group_channels * step;
  const T* w = weights + (i64)filter * c.kernel[0] * c.kernel[1] * c.kernel[2] * c.group_channels;
  float sum = HAS_BIAS ? bias[filter] : 0.0f;
  for (int kd = 0; kd < c.kernel[0]; ++kd) {
    const int d = source_of(c, 0, at[0], kd);
    for (int kh = 0; kh < c.kernel[1]; ++kh) {
      const int h = source_of(c, 1, at[1], kh);
      for (int kw = 0; kw < c.kernel[2]; ++kw, w += c.group_channels) {
        const int v = source_of(c, 2, at[2], kw);
        if (d < 0 || h < 0 || v < 0) continue;
        const Operand* element = from + (((i64)d * c.input[1] + h) * c.input[2] + v) * pixel;
        for (int k = 0; k < c.group_channels; ++k) sum += operand(element[k * step], numbers) * as_float(w[k]);
      }
    }
  }
  sum = finish(sum, HAS_RESIDUAL ? added(residual[item], numbers) : 0.0f, numbers);
  y[item] = convert<Result>(sum);
}
