// SPDX-License-Identifier: Apache-2.0
//
// Resampling of up to three spatial axes: a thread per result. Source coordinates are affine in the result's. Before this stand
// T, CHANNELS_LAST, LINEAR, NEAREST(x), an index as a double, and the parameters.

static inline int inside(double at, int size) { return at < 0 ? 0 : at >= size ? size - 1 : (int)at; }

extern "C" __global__ void resize(RESIZE_PARAMETERS) {
  await_operands();
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= r.results) return;
  int rest = item, channel = 0, index[3][2];
  float weight[3][2];
  if (CHANNELS_LAST) channel = rest % r.channels, rest /= r.channels;
#pragma unroll
  for (int axis = 2; axis >= 0; --axis) {
    const double at = (rest % r.result[axis]) * r.factor[axis] + r.shift[axis];
    rest /= r.result[axis];
    const double base = LINEAR ? floor(at) : NEAREST(at);
    index[axis][0] = inside(base, r.input[axis]);
    index[axis][1] = inside(base + 1, r.input[axis]);
    weight[axis][1] = LINEAR ? (float)(at - base) : 0.0f;
    weight[axis][0] = 1.0f - weight[axis][1];
  }
  if (!CHANNELS_LAST) channel = rest % r.channels, rest /= r.channels;
  const i64 plane = (i64)r.input[0] * r.input[1] * r.input[2];
  const int pixel = CHANNELS_LAST ? r.channels : 1;
  const T* from = CHANNELS_LAST ? x + rest * plane * r.channels + channel : x + ((i64)rest * r.channels + channel) * plane;
  float sum = 0;
#pragma unroll
  for (int corner = 0; corner < 8; ++corner) {
    const int a = corner / 4, b = corner / 2 % 2, c = corner % 2;
    const float share = weight[0][a] * weight[1][b] * weight[2][c];
    if (share != 0) sum += share * as_float(from[(((i64)index[0][a] * r.input[1] + index[1][b]) * r.input[2] + index[2][c]) * pixel]);
  }
  y[item] = convert<T>(sum);
}
