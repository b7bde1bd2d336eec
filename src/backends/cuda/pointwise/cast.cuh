// SPDX-License-Identifier: Apache-2.0
//
// Element by element from one type to another. Before this stand From, To and the parameters.

extern "C" __global__ void cast(CAST_PARAMETERS) {
  await_operands();
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item < count) to[item] = convert<To>(from[item]);
}
