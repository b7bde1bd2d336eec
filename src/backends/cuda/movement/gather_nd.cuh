// SPDX-License-Identifier: Apache-2.0
//
// Rows copied by position, a list of indices each. An index outside of its axis is brought inside, so that bad data cannot make
// the kernel read elsewhere. Before this stand Index and the parameters. `row` and steps count units of the type E.

template <typename E> static inline void gather_positions(const E* data, const Index* indices, E* y, const Positions& p, int row, i64 total) {
  const i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= total) return;
  const i64 position = item / row;
  i64 from = position / p.in_batch * p.batch_step + item % row;
  for (int i = 0; i < p.depth; ++i) {
    const int n = p.sizes[i];
    i64 index = indices[position * p.depth + i];
    if (index < 0) index += n;
    from += (index < 0 ? 0 : index >= n ? n - 1 : index) * p.steps[i];
  }
  y[item] = data[from];
}

#define GATHER_ND(E, name) \
  extern "C" __global__ void gather_nd_##name(GATHER_ND_PARAMETERS(E)) { await_operands(); gather_positions(data, indices, y, p, row, total); }

struct alignas(16) Quad { unsigned long long a, b; };
GATHER_ND(unsigned char, 1)
GATHER_ND(unsigned short, 2)
GATHER_ND(unsigned, 4)
GATHER_ND(unsigned long long, 8)
GATHER_ND(Quad, 16)
