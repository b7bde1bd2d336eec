// SPDX-License-Identifier: Apache-2.0
//
// Vectors of two halves are rotated against each other; V elements of each half to a thread. Before this stand T, V and the parameters.
// A vector's angles are those of its place in the first and the third of four groups of axes: the others share them.

extern "C" __global__ void rotary(ROTARY_PARAMETERS) {
  await_operands();
  typedef Vector<T, V> Part;
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= items) return;
  const int parts = half / V, vector = item / parts, place = vector / inner;
  const i64 from = (i64)vector * 2 * half + item % parts * V;
  const i64 angle = ((i64)(place / tokens / heads) * tokens + place % tokens) * 2 * half + item % parts * V;
  const Part first = *reinterpret_cast<const Part*>(x + from), second = *reinterpret_cast<const Part*>(x + from + half);
  const Part cos_first = *reinterpret_cast<const Part*>(cosines + angle), cos_second = *reinterpret_cast<const Part*>(cosines + angle + half);
  const Part sin_first = *reinterpret_cast<const Part*>(sines + angle), sin_second = *reinterpret_cast<const Part*>(sines + angle + half);
  Part low, high;
#pragma unroll
  for (int i = 0; i < V; ++i) {
    const float a = as_float(first.at[i]), b = as_float(second.at[i]);
    low.at[i] = convert<T>(a * as_float(cos_first.at[i]) - b * as_float(sin_first.at[i]));
    high.at[i] = convert<T>(b * as_float(cos_second.at[i]) + a * as_float(sin_second.at[i]));
  }
  *reinterpret_cast<Part*>(y + from) = low;
  *reinterpret_cast<Part*>(y + from + half) = high;
}
