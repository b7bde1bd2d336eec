// SPDX-License-Identifier: Apache-2.0
//
// Numbers at equal distances. Before this stand T, Number (what it is computed in) and the parameters.

extern "C" __global__ void range(RANGE_PARAMETERS) {
  await_operands();
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = (T)((Number)*start + (Number)i * (Number)*step);
}
