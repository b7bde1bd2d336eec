// SPDX-License-Identifier: Apache-2.0
//
// All that follows a matmul and its bias, in place, VECTOR elements a thread. Before this stand T, VECTOR, the parameters, the epilogue's
// switches and finish().

extern "C" __global__ void finish_sums(FINISH_SUMS_PARAMETERS) {
  await_operands();
  const i64 at = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * VECTOR;
  if (at + VECTOR > count) {
    for (i64 i = at; i < count; ++i) sums[i] = convert<T>(finish(as_float(sums[i]), HAS_RESIDUAL ? added(residual[i], numbers) : 0.0f, numbers));
    return;
  }
  Vector<T, VECTOR> values = *reinterpret_cast<const Vector<T, VECTOR>*>(sums + at), other;
  if (HAS_RESIDUAL) other = *reinterpret_cast<const Vector<T, VECTOR>*>(residual + at);
#pragma unroll
  for (int i = 0; i < VECTOR; ++i)
    values.at[i] = convert<T>(finish(as_float(values.at[i]), HAS_RESIDUAL ? added(other.at[i], numbers) : 0.0f, numbers));
  *reinterpret_cast<Vector<T, VECTOR>*>(sums + at) = values;
}
