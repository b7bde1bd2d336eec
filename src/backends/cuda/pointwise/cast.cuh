// SPDX-License-Identifier: Apache-2.0
//
// From one type to another, V neighbours a thread. Before this stand From, To, V, ROUNDED(x) (the values that are cast) and the parameters.

extern "C" __global__ void cast(CAST_PARAMETERS) {
  await_operands();
  const i64 at = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * V;
  // A program's own memory may begin anywhere.
  const bool aligned = reinterpret_cast<unsigned long long>(from) % sizeof(Vector<From, V>) == 0 && reinterpret_cast<unsigned long long>(to) % sizeof(Vector<To, V>) == 0;
  if (aligned && at + V <= count) {
    const Vector<From, V> given = *reinterpret_cast<const Vector<From, V>*>(from + at);
    Vector<To, V> made;
#pragma unroll
    for (int i = 0; i < V; ++i) made.at[i] = convert<To>(ROUNDED(given.at[i]));
    *reinterpret_cast<Vector<To, V>*>(to + at) = made;
  } else {
    for (i64 i = at; i < at + V && i < count; ++i) to[i] = convert<To>(ROUNDED(from[i]));
  }
}
