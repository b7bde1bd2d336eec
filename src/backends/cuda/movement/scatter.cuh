// SPDX-License-Identifier: Apache-2.0
//
// Elements put at positions into a copy of the data; of several for one place the last one stays, whichever is first to be run: the
// first of the kernels behind the copy finds out which that is. An index outside of its axis is brought inside, so that bad data
// cannot make a kernel write elsewhere. Before this stand Index and the parameters; E has the size of an element, of the copy a
// larger one.

static inline i64 inside(i64 index, int n) {
  if (index < 0) index += n;
  return index < 0 ? 0 : index >= n ? n - 1 : index;
}

// Along one axis; all others are as in the updates.
static inline i64 element_of(i64 item, const Index* indices, const Updates& u) {
  i64 rest = item, to = inside(indices[item], u.n) * u.step;
  for (int axis = u.rank - 1; axis >= 0; --axis) {
    to += rest % u.sizes[axis] * u.steps[axis];   // 0 along the axis of the indices
    rest /= u.sizes[axis];
  }
  return to;
}

// Rows at positions, of which each has `rank` entries.
static inline i64 row_element_of(i64 item, const Index* indices, const Updates& u) {
  const i64 position = item / u.step;
  i64 to = item % u.step;
  for (int k = 0; k < u.rank; ++k) to += inside(indices[position * u.rank + k], u.sizes[k]) * u.steps[k];
  return to;
}

template <typename E> static inline void copy_data(const E* data, E* y, int* last, i64 total, i64 elements) {
  const i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (item < total) y[item] = data[item];
  for (i64 i = item; i < elements; i += (i64)gridDim.x * blockDim.x) last[i] = -1;
}

#define ITEM const i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x; if (item >= u.total) return

extern "C" __global__ void scatter_elements_last(SCATTER_ELEMENTS_LAST_PARAMETERS) {
  await_operands();
  ITEM;
  atomicMax(&last[element_of(item, indices, u)], (int)item);
}
extern "C" __global__ void scatter_nd_last(SCATTER_ND_LAST_PARAMETERS) {
  await_operands();
  ITEM;
  atomicMax(&last[row_element_of(item, indices, u)], (int)item);
}

#define SCATTER(E, name) \
  extern "C" __global__ void scatter_copy_##name(SCATTER_COPY_PARAMETERS(E)) { await_operands(); copy_data(data, y, last, total, elements); } \
  extern "C" __global__ void scatter_elements_##name(SCATTER_ELEMENTS_PARAMETERS(E)) { \
    await_operands(); \
    ITEM; \
    const i64 to = element_of(item, indices, u); \
    if (last[to] == item) y[to] = updates[item]; \
  } \
  extern "C" __global__ void scatter_nd_##name(SCATTER_ND_PARAMETERS(E)) { \
    await_operands(); \
    ITEM; \
    const i64 to = row_element_of(item, indices, u); \
    if (last[to] == item) y[to] = updates[item]; \
  }

struct alignas(16) Quad { unsigned long long a, b; };
SCATTER(unsigned char, 1)
SCATTER(unsigned short, 2)
SCATTER(unsigned, 4)
SCATTER(unsigned long long, 8)
SCATTER(Quad, 16)
