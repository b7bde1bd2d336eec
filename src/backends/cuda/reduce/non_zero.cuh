// SPDX-License-Identifier: Apache-2.0
//
// NonZero: the places of the elements that are not zero, in their order, all coordinates along an axis behind each other. A block
// looks through PIECE elements. Where there are several, the first kernel counts what each will find, so that the second knows
// where its finds begin and how many there are in all. Before this stand T, PIECE, AXES and the parameters.

static inline i64 piece_end(i64 count) {
  const i64 end = ((i64)blockIdx.x + 1) * PIECE;
  return end < count ? end : count;
}

static inline int found_in_piece(const T* x, i64 count, int* scratch) {
  int found = 0;
  for (i64 i = (i64)blockIdx.x * PIECE + threadIdx.x; i < piece_end(count); i += blockDim.x) found += convert<bool>(x[i]);
  return block_sum(found, scratch);
}

extern "C" __global__ void __launch_bounds__(256) non_zero_count(NON_ZERO_COUNT_PARAMETERS) {
  await_operands();
  __shared__ int scratch[8];
  const int found = found_in_piece(x, count, scratch);
  if (threadIdx.x == 0) found_by_block[blockIdx.x] = found;
}

extern "C" __global__ void __launch_bounds__(256) non_zero_write(NON_ZERO_WRITE_PARAMETERS) {
  await_operands();
  __shared__ i64 sums[8];
  __shared__ int found_by_warp[8];
  i64 before = 0, total = 0;
  if (gridDim.x == 1) total = found_in_piece(x, count, found_by_warp);
  else {
    for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
      total += found_by_block[i];
      before += i < blockIdx.x ? found_by_block[i] : 0;
    }
    before = block_sum(before, sums);
    total = block_sum(total, sums);
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 end = piece_end(count);
  for (i64 base = (i64)blockIdx.x * PIECE; base < end; base += blockDim.x) {
    const i64 i = base + threadIdx.x;
    const bool found = i < end && convert<bool>(x[i]);
    const unsigned votes = __ballot_sync(~0u, found);
    __syncthreads();
    if (lane == 0) found_by_warp[warp] = __popc(votes);
    __syncthreads();
    i64 at = before + __popc(votes & ((1u << lane) - 1));
    for (int other = 0; other < 8; ++other) {
      at += other < warp ? found_by_warp[other] : 0;
      before += found_by_warp[other];
    }
    if (!found) continue;
    i64 rest = i;
    for (int axis = box.rank - 1; axis >= 0; --axis) {
      places[axis * total + at] = rest % box.sizes[axis];
      rest /= box.sizes[axis];
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) sizes[0] = box.rank, sizes[1] = total;
}
