// SPDX-License-Identifier: Apache-2.0
//
// Reductions over any axes. A warp or a block works on one result where the reduced axes lie innermost, a thread per result
// elsewhere; rows of whole vectors, and axes between others of which the inner ones come in whole vectors, are walked with vectors
// by a block, and long walks by the blocks of a cluster together. Before this stand T, Sum (what totals are kept in), NUMBER(x) (an element as
// one), V, CLUSTER (0: the GPU has none), AXES, the parameters, and FIRST, EACH(x), JOIN(a, b), LAST(a, count).

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

extern "C" __global__ void reduce_by_thread(REDUCE_BY_PARAMETERS) {
  await_operands();
  const int result = blockIdx.x * blockDim.x + threadIdx.x;
  if (result >= results) return;
  const T* from = x + offset_of(kept, result);
  Sum total = FIRST;
  for (int i = 0; i < count; ++i) total = JOIN(total, EACH(NUMBER(from[offset_of(reduced, i)])));
  y[result] = convert<T>(LAST(total, count));
}

// Of a block of whole warps, for its first thread; `scratch` has a place for each warp.
static inline Sum block_total(Sum total, Sum* scratch) {
  for (int step = 16; step > 0; step /= 2) total = JOIN(total, __shfl_xor_sync(0xffffffffu, total, step));
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = total;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 1; i < blockDim.x / 32; ++i) total = JOIN(total, scratch[i]);
  return total;
}

extern "C" __global__ void reduce_by_block(REDUCE_BY_PARAMETERS) {
  await_operands();
  __shared__ Sum scratch[32];
  const T* from = x + offset_of(kept, blockIdx.x);
  Sum total = FIRST;
  for (int i = threadIdx.x; i < count; i += blockDim.x) total = JOIN(total, EACH(NUMBER(from[offset_of(reduced, i)])));
  total = block_total(total, scratch);
  if (threadIdx.x == 0) y[blockIdx.x] = convert<T>(LAST(total, count));
}

// x lies as [row][count]. Block z of a cluster takes every so manieth vector of its row and finishes nothing unless z is 0.
template <int SPLITS> static inline void reduce_row(const T* x, T* y, int count) {
  await_operands();
  extern __shared__ uint4 memory[];
  Sum* const totals = reinterpret_cast<Sum*>(memory);  // of the block's warps, then of the block
  typedef Vector<T, V> Part;
  const Part* from = reinterpret_cast<const Part*>(x + (i64)blockIdx.x * count);
  Sum own[V];
#pragma unroll
  for (int i = 0; i < V; ++i) own[i] = FIRST;
#pragma unroll 4
  for (int at = blockIdx.z * blockDim.x + threadIdx.x; at < count / V; at += SPLITS * blockDim.x) {
    const Part part = from[at];
#pragma unroll
    for (int i = 0; i < V; ++i) own[i] = JOIN(own[i], EACH(NUMBER(part.at[i])));
  }
  Sum total = own[0];
#pragma unroll
  for (int i = 1; i < V; ++i) total = JOIN(total, own[i]);
  total = block_total(total, totals);
#if CLUSTER
  if (SPLITS > 1) {
    if (threadIdx.x == 0) totals[0] = total;
    meet_cluster();
    if (blockIdx.z == 0 && threadIdx.x == 0)
      for (int rank = 1; rank < SPLITS; ++rank) {
        const float other = of_block(totals, rank);
        total = JOIN(total, other);
      }
    meet_cluster();
  }
#endif
  if (blockIdx.z == 0 && threadIdx.x == 0) y[blockIdx.x] = convert<T>(LAST(total, count));
}

extern "C" __global__ void __launch_bounds__(256) reduce_rows(REDUCE_ROWS_PARAMETERS) { reduce_row<1>(x, y, count); }
#if CLUSTER
extern "C" __global__ void __cluster_dims__(1, 1, 8) __launch_bounds__(256) reduce_rows_together(REDUCE_ROWS_PARAMETERS) {
  reduce_row<8>(x, y, count);
}
#endif

// x lies as [outer][count][inner]. LANES threads side by side take V elements each of the inner axis, the others of the block
// (and of the cluster) every so manieth of the reduced one. Block z of a cluster finishes nothing unless z is 0.
template <int SPLITS, int THREADS> static inline void reduce_part(const T* x, T* y, int count, int inner, int lanes) {
  await_operands();
  extern __shared__ uint4 memory[];
  Sum* const totals = reinterpret_cast<Sum*>(memory);  // V of each thread
  typedef Vector<T, V> Part;
  const int lane = threadIdx.x % lanes, first = threadIdx.x / lanes, rows = THREADS / lanes;
  const int column = (blockIdx.x * lanes + lane) * V;
  Sum own[V];
#pragma unroll
  for (int i = 0; i < V; ++i) own[i] = FIRST;
  if (column < inner) {
    const T* from = x + (i64)blockIdx.y * count * inner + column;
#pragma unroll 8
    for (int at = blockIdx.z * rows + first; at < count; at += SPLITS * rows) {
      const Part part = *reinterpret_cast<const Part*>(from + (i64)at * inner);
#pragma unroll
      for (int i = 0; i < V; ++i) own[i] = JOIN(own[i], EACH(NUMBER(part.at[i])));
    }
  }
#pragma unroll
  for (int i = 0; i < V; ++i) totals[threadIdx.x * V + i] = own[i];
  __syncthreads();
  for (int reach = rows / 2; reach > 0; reach /= 2) {
    if (first < reach)
#pragma unroll
      for (int i = 0; i < V; ++i) {
        own[i] = JOIN(own[i], totals[(threadIdx.x + reach * lanes) * V + i]);
        totals[threadIdx.x * V + i] = own[i];
      }
    __syncthreads();
  }
#if CLUSTER
  if (SPLITS > 1) {
    meet_cluster();
    if (blockIdx.z == 0 && first == 0)
      for (int rank = 1; rank < SPLITS; ++rank)
#pragma unroll
        for (int i = 0; i < V; ++i) {
          const float other = of_block(totals + threadIdx.x * V + i, rank);
          own[i] = JOIN(own[i], other);
        }
    meet_cluster();
  }
#endif
  if (blockIdx.z != 0 || first != 0 || column >= inner) return;
  Part result;
#pragma unroll
  for (int i = 0; i < V; ++i) result.at[i] = convert<T>(LAST(own[i], count));
  *reinterpret_cast<Part*>(y + (i64)blockIdx.y * inner + column) = result;
}

extern "C" __global__ void __launch_bounds__(256) reduce_columns(REDUCE_COLUMNS_PARAMETERS) {
  reduce_part<1, 256>(x, y, count, inner, lanes);
}
#if CLUSTER
extern "C" __global__ void __cluster_dims__(1, 1, 8) __launch_bounds__(512) reduce_columns_together(REDUCE_COLUMNS_PARAMETERS) {
  reduce_part<8, 512>(x, y, count, inner, lanes);
}
#endif
