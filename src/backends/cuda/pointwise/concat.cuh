// SPDX-License-Identifier: Apache-2.0
//
// Tensors behind each other along an axis, and a formula of what they become, in one pass: blocks belong to one source each, a thread
// takes V neighbours of it, a few times. Before this stand T, Result, S (scalars), V, MOST_EACH (times, or one), PICK (the source of a
// block), FORMULA (of held[i] at a position along the axis, to out), the parameters, formula.cuh and support/division.cuh.

extern "C" __global__ void concat(CONCAT_PARAMETERS) {
  await_operands();
  const T* from = x0;
  int first_block = 0, first = parts.firsts[0], count = parts.counts[0];
  Divisor run = parts.runs[0];
  PICK
  const unsigned item = ((int)blockIdx.x - first_block) * blockDim.x * each + threadIdx.x;
  Vector<T, V> held[MOST_EACH];
#pragma unroll
  for (int i = 0; i < MOST_EACH; ++i) {
    const unsigned at = item + i * blockDim.x;
    if (i < each && at < (unsigned)count) held[i] = *reinterpret_cast<const Vector<T, V>*>(from + (i64)at * V);
  }
#pragma unroll
  for (int i = 0; i < MOST_EACH; ++i) {
    unsigned row = item + i * blockDim.x;
    if (i >= each || row >= (unsigned)count) continue;
    const unsigned within = first + split_off(row, run);
    const unsigned position = quotient(within * V, parts.inner);
    const i64 to = (i64)row * parts.total + within * V;
    Vector<Result, V> out;
    FORMULA
    *reinterpret_cast<Vector<Result, V>*>(result + to) = out;
  }
}
