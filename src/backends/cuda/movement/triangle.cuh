// SPDX-License-Identifier: Apache-2.0
//
// Matrices of which one triangle is kept and the rest is zeros. Before this stand E, an element's bytes, UPPER and the parameters.

extern "C" __global__ void triangle(TRIANGLE_PARAMETERS) {
  await_operands();
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const i64 behind = i % columns - i / columns % rows;  // the diagonal
  y[i] = (UPPER ? behind >= *diagonal : behind <= *diagonal) ? x[i] : E();
}
