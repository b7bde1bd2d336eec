// SPDX-License-Identifier: Apache-2.0
//
// NonMaxSuppression: of each line (the boxes of a batch, as one class sees them), best first, those that overlap none kept before
// by more than a limit. One kernel puts the boxes in order: a box's place is the number of better ones. Then CHUNK boxes at a time
// are decided: each block finds out which of them are kept, and takes out what these suppress among the boxes behind. The last
// kernel writes down what was kept. Sums and products are rounded one by one, as the definition's are: a box on the limit
// is on the same side of it everywhere. Before this stand CHUNK (64, bits of a word) and the parameters.

typedef unsigned long long Bits;

// 0: not among those to choose from. Equal numbers have equal keys, not-a-number the least.
static inline unsigned key_of(float score, const Task& task) {
  if (task.thresholded && !(score > task.least)) return 0;
  if (score != score) return 1;
  const unsigned bits = __float_as_uint(score + 0.0f);   // -0 is 0
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static inline float smaller(float a, float b) { return b < a ? b : a; }
static inline float larger(float a, float b) { return a < b ? b : a; }

// Top, left, bottom, right.
static inline float4 box_of(const float* b, const Task& task) {
  if (task.centered)
    return make_float4(__fsub_rn(b[1], b[3] / 2), __fsub_rn(b[0], b[2] / 2), __fadd_rn(b[1], b[3] / 2), __fadd_rn(b[0], b[2] / 2));
  return make_float4(smaller(b[0], b[2]), smaller(b[1], b[3]), larger(b[0], b[2]), larger(b[1], b[3]));
}

static inline float area_of(const float4& a) { return __fmul_rn(__fsub_rn(a.z, a.x), __fsub_rn(a.w, a.y)); }

static inline bool suppressed(const float4& a, const float4& by, float limit) {
  const float height = __fsub_rn(smaller(a.z, by.z), larger(a.x, by.x)), width = __fsub_rn(smaller(a.w, by.w), larger(a.y, by.y));
  if (height <= 0 || width <= 0) return 0 > limit;
  const float shared = __fmul_rn(height, width), together = __fsub_rn(__fadd_rn(area_of(a), area_of(by)), shared);
  return (together <= 0 ? 0 : __fdiv_rn(shared, together)) > limit;
}

extern "C" __global__ void __launch_bounds__(256) non_max_suppression_order(NON_MAX_SUPPRESSION_ORDER_PARAMETERS) {
  await_operands();
  __shared__ unsigned keys[256];
  const i64 line = blockIdx.y, first = line * task.boxes;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned own = i < task.boxes ? key_of(scores[first + i], task) : 0;
  int place = 0, all = 0;
  for (int base = 0; base < task.boxes; base += blockDim.x) {
    const int other = base + threadIdx.x;
    keys[threadIdx.x] = other < task.boxes ? key_of(scores[first + other], task) : 0;
    __syncthreads();
    for (int k = 0; k < blockDim.x; ++k) {
      place += keys[k] > own || (keys[k] == own && base + k < i);
      all += keys[k] != 0;
    }
    __syncthreads();
  }
  if (own != 0) {
    order[first + place] = i;
    sorted[first + place] = box_of(boxes + (line / task.classes * task.boxes + i) * 4, task);
    alive[first + place] = 1;
  }
  if (i == 0) candidates[line] = all, kept_before[line * (task.chunks + 1)] = 0;
}

extern "C" __global__ void __launch_bounds__(256) non_max_suppression_chunk(NON_MAX_SUPPRESSION_CHUNK_PARAMETERS) {
  await_operands();
  __shared__ float4 own[CHUNK];
  __shared__ Bits suppresses[CHUNK], chosen;
  __shared__ unsigned living[2];
  const i64 line = blockIdx.y;
  const int base = chunk * CHUNK, count = min(candidates[line] - base, CHUNK), before = kept_before[line * (task.chunks + 1) + chunk];
  const bool writes = blockIdx.x == 0 && threadIdx.x == 0;
  sorted += line * task.boxes + base;
  alive += line * task.boxes + base;
  kept += line * task.chunks + chunk;
  kept_before += line * (task.chunks + 1) + chunk;
  if (count <= 0 || before >= task.most) {
    if (writes) kept[0] = 0, kept_before[1] = before;
    return;
  }
  if (threadIdx.x < CHUNK) {
    const int i = threadIdx.x;
    const unsigned votes = __ballot_sync(~0u, i < count && alive[i]);
    if (i % 32 == 0) living[i / 32] = votes;
    if (i < count) own[i] = sorted[i];
    suppresses[i] = 0;
  }
  __syncthreads();
  Bits bits = 0;
  const int row = threadIdx.x / 4;
  for (int i = threadIdx.x % 4; i < count; i += 4)
    if (row < i && suppressed(own[i], own[row], task.limit)) bits |= Bits(1) << i;
  atomicOr(&suppresses[row], bits);
  __syncthreads();
  if (threadIdx.x == 0) {
    Bits left = living[0] | (Bits)living[1] << 32, taken = 0;
    for (int i = 0; i < count; ++i)
      if (left >> i & 1) taken |= Bits(1) << i, left &= ~suppresses[i];
    chosen = taken;
  }
  __syncthreads();
  if (writes) kept[0] = chosen, kept_before[1] = before + __popcll(chosen);
  const int i = CHUNK + blockIdx.x * blockDim.x + threadIdx.x;
  if (base + i >= candidates[line] || !alive[i]) return;
  const float4 box = sorted[i];
  for (Bits rest = chosen; rest != 0; rest &= rest - 1)
    if (suppressed(box, own[__ffsll(rest) - 1], task.limit)) {
      alive[i] = 0;
      return;
    }
}

extern "C" __global__ void __launch_bounds__(256) non_max_suppression_write(NON_MAX_SUPPRESSION_WRITE_PARAMETERS) {
  await_operands();
  __shared__ int scratch[8];
  const int line = blockIdx.y, place = blockIdx.x * blockDim.x + threadIdx.x, chunk = place / CHUNK;
  const int stride = task.chunks + 1;
  int before = 0, all = 0;
  for (int i = threadIdx.x; i < gridDim.y; i += blockDim.x) {
    const int count = min(kept_before[(i64)i * stride + task.chunks], task.most);
    all += count;
    before += i < line ? count : 0;
  }
  before = block_sum(before, scratch);
  all = block_sum(all, scratch);
  if (line == 0 && place == 0) sizes[0] = all, sizes[1] = 3;
  if (place >= task.boxes) return;
  const Bits word = kept[(i64)line * task.chunks + chunk], bit = Bits(1) << place % CHUNK;
  const int at = kept_before[(i64)line * stride + chunk] + __popcll(word & (bit - 1));
  if (!(word & bit) || at >= task.most) return;
  i64* row = selected + ((i64)before + at) * 3;
  row[0] = line / task.classes;
  row[1] = line % task.classes;
  row[2] = order[(i64)line * task.boxes + place];
}
