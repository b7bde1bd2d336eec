// SPDX-License-Identifier: Apache-2.0
//
// Reductions over any axes. A warp or a block works on one result where the reduced axes lie innermost, a thread per result
// elsewhere. Before this stand T, and FIRST, EACH(x), JOIN(a, b), LAST(a, count).

#define AXES 4
struct Axes {
  int sizes[AXES], strides[AXES];  // innermost last
};

static inline i64 offset_of(const Axes& axes, unsigned item) {
  i64 offset = 0;
#pragma unroll
  for (int axis = AXES - 1; axis >= 0; --axis) {
    if (axes.sizes[axis] == 1) continue;
    offset += (i64)(item % axes.sizes[axis]) * axes.strides[axis];
    item /= axes.sizes[axis];
  }
  return offset;
}

extern "C" __global__ void reduce_by_thread(const T* x, T* y, const Axes kept, const Axes reduced, int results, int count) {
  const int result = blockIdx.x * blockDim.x + threadIdx.x;
  if (result >= results) return;
  const T* from = x + offset_of(kept, result);
  float total = FIRST;
  for (int i = 0; i < count; ++i) total = JOIN(total, EACH(as_float(from[offset_of(reduced, i)])));
  y[result] = convert<T>(LAST(total, count));
}

extern "C" __global__ void reduce_by_block(const T* x, T* y, const Axes kept, const Axes reduced, int results, int count) {
  __shared__ float scratch[32];
  const T* from = x + offset_of(kept, blockIdx.x);
  float total = FIRST;
  for (int i = threadIdx.x; i < count; i += blockDim.x) total = JOIN(total, EACH(as_float(from[offset_of(reduced, i)])));
  for (int step = 16; step > 0; step /= 2) total = JOIN(total, __shfl_xor_sync(0xffffffffu, total, step));
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = total;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < blockDim.x / 32; ++i) total = JOIN(total, scratch[i]);
  y[blockIdx.x] = convert<T>(LAST(total, count));
}
