// SPDX-License-Identifier: Apache-2.0
//
// LSTM, and GRU that resets behind the matmul. The input's part of all gates of all steps comes first; then a cluster of blocks
// per sequence and direction walks the steps. A block owns UNITS hidden units and keeps their rows of the recurrent weights in
// registers, PART columns in a thread; behind every step each new state goes to the shared memory of all blocks of the cluster.
//
// Before this stand T, GATES (4: LSTM, 3: GRU), HIDDEN, UNITS, BLOCKS (of a cluster: HIDDEN / UNITS), PARTS (threads that share a
// row), WIDTH (of the input) and the parameters. Weights are f32: [direction][column][gate][unit], so that neighbouring threads read neighbours.

#define ROWS (GATES * HIDDEN)        // of the weights of a direction
#define OWN (GATES * UNITS)          // of a block
#define PART (HIDDEN / PARTS)

// Eight rows of the input against 128 rows of weights.
extern "C" __global__ void __launch_bounds__(128) recurrent_inputs(RECURRENT_INPUTS_PARAMETERS) {
  await_operands();
  __shared__ float rows[8][128];
  const int count = s.steps * s.batch, first = blockIdx.x * 8, gate = blockIdx.y * 128 + threadIdx.x, direction = blockIdx.z;
  weights += (i64)direction * WIDTH * ROWS;
  float sums[8];
#pragma unroll
  for (int r = 0; r < 8; ++r) sums[r] = gate < ROWS ? bias[direction * ROWS + gate] : 0.0f;
  for (int start = 0; start < WIDTH; start += 128) {
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 8; ++r) rows[r][threadIdx.x] = first + r < count && start + threadIdx.x < WIDTH ? as_float(x[(i64)(first + r) * WIDTH + start + threadIdx.x]) : 0.0f;
    __syncthreads();
    if (gate >= ROWS) continue;
#pragma unroll 8
    for (int k = 0; k < 128 && start + k < WIDTH; ++k) {
      const float weight = weights[(i64)(start + k) * ROWS + gate];
#pragma unroll
      for (int r = 0; r < 8; ++r) sums[r] += rows[r][k] * weight;
    }
  }
#pragma unroll
  for (int r = 0; r < 8; ++r)
    if (first + r < count && gate < ROWS) result[((i64)direction * count + first + r) * ROWS + gate] = sums[r];
}

static inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

static inline void store_in_block(float* own, unsigned rank, float value) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" : : "r"(place_in_block(own, rank)), "f"(value) : "memory");
}

// `inputs` are the input's parts; late_bias is added to the GRU's third matmul before it is reset. y, last_h, last_c may be null.
extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(OWN * PARTS) recurrent(RECURRENT_PARAMETERS) {
  __shared__ alignas(16) float state[2][HIDDEN];
  __shared__ float sums[PARTS][OWN];
  const int block = blockIdx.x, direction = blockIdx.y, n = blockIdx.z;
  const int row = threadIdx.x % OWN, part = threadIdx.x / OWN, gate = row / UNITS * HIDDEN + block * UNITS + row % UNITS;
  const bool backwards = direction == 1 || s.backwards;
  float own[PART];
#pragma unroll
  for (int k = 0; k < PART; ++k) own[k] = weights[((i64)direction * HIDDEN + part * PART + k) * ROWS + gate];
  await_operands();
  const i64 states = ((i64)direction * s.batch + n) * HIDDEN;
  for (int k = threadIdx.x; k < HIDDEN; k += OWN * PARTS) state[0][k] = first_h == nullptr ? 0.0f : as_float(first_h[states + k]);
  // The first UNITS threads finish a unit each.
  const bool finishes = threadIdx.x < UNITS;
  const int unit = block * UNITS + threadIdx.x;
  float cell = finishes && first_c != nullptr ? as_float(first_c[states + unit]) : 0.0f, value = 0;
  const float late = GATES == 3 && finishes ? late_bias[direction * HIDDEN + unit] : 0.0f;
  meet_cluster();
  for (int step = 0; step < s.steps; ++step) {
    const int time = backwards ? s.steps - 1 - step : step;
    float input[GATES];
    if (finishes)
#pragma unroll
      for (int g = 0; g < GATES; ++g) input[g] = inputs[(((i64)direction * s.steps + time) * s.batch + n) * ROWS + g * HIDDEN + unit];
    const float* from = state[step % 2] + part * PART;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < PART; k += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + k);
      sum += own[k] * four.x + own[k + 1] * four.y + own[k + 2] * four.z + own[k + 3] * four.w;
    }
    sums[part][row] = sum;
    __syncthreads();
    if (finishes) {
      float total[GATES];
#pragma unroll
      for (int g = 0; g < GATES; ++g) {
        total[g] = 0;
#pragma unroll
        for (int p = 0; p < PARTS; ++p) total[g] += sums[p][g * UNITS + threadIdx.x];
      }
      if (GATES == 4) {  // input, output, forget, cell
        cell = sigmoid(total[2] + input[2]) * cell + sigmoid(total[0] + input[0]) * tanhf(total[GATES - 1] + input[GATES - 1]);
        value = sigmoid(total[1] + input[1]) * tanhf(cell);
      } else {           // update, reset, hidden
        const float update = sigmoid(total[0] + input[0]), reset = sigmoid(total[1] + input[1]);
        const float fresh = tanhf(input[2] + reset * (total[2] + late));
        value = (1.0f - update) * fresh + update * state[step % 2][unit];
      }
      for (int rank = 0; rank < BLOCKS; ++rank) store_in_block(&state[(step + 1) % 2][unit], rank, value);
      if (y != nullptr) y[(((i64)time * s.directions + direction) * s.batch + n) * HIDDEN + unit] = convert<T>(value);
    }
    meet_cluster();
  }
  if (!finishes) return;
  if (last_h != nullptr) last_h[states + unit] = convert<T>(value);
  if (last_c != nullptr) last_c[states + unit] = convert<T>(cell);
}
