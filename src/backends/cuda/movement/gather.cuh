// SPDX-License-Identifier: Apache-2.0
//
// Rows copied by index. An index outside of the axis is brought inside, so that bad data cannot make the kernel read elsewhere.
// Before this stand Index and the parameters. `row` counts units of the type E.

template <typename E> static inline void gather_rows(const E* data, const Index* indices, E* y, int n, int row, int count, i64 total) {
  const i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= total) return;
  const i64 at = item / row, outer = at / count;
  i64 index = indices[at % count];
  if (index < 0) index += n;
  index = index < 0 ? 0 : index >= n ? n - 1 : index;
  y[item] = data[(outer * n + index) * row + item % row];
}

#define GATHER(E, name) \
  extern "C" __global__ void gather_##name(GATHER_PARAMETERS(E)) { await_operands(); gather_rows(data, indices, y, n, row, count, total); }

struct alignas(16) Quad { unsigned long long a, b; };
GATHER(unsigned char, 1)
GATHER(unsigned short, 2)
GATHER(unsigned, 4)
GATHER(unsigned long long, 8)
GATHER(Quad, 16)
