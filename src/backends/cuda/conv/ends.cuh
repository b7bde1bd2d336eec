// SPDX-License-Identifier: Apache-2.0
//
// How kernels of convolutions and matmuls finish and store their sums, neighbouring filters side by side. Before this stand CODED and
// HAS_ZERO (whether sums are of codes, and their operand has a zero point), FOUR_CODES (what makes four codes of as many floats), FILTERS (of all matmuls together), ROW_FILTERS (of each: FILTERS, or a part of it) and the
// epilogue's switches and functions.

struct Results {
  Result *a, *b, *c, *d;
  // Of a matmul, without an array, which would lie in memory.
  Result* of(int product) const {
    if (ROW_FILTERS == FILTERS || product == 0) return a;
    return product == 1 ? b : product == 2 ? c : d;
  }
};

// Neighbours as floats, and floats as neighbours; four codes at once need no conversions, of which a processor makes few.
template <typename From, int W> static inline void added_vector(const Vector<From, W>& from, float* to, const StepNumbers& numbers) {
#pragma unroll
  for (int i = 0; i < W; ++i) to[i] = added(from.at[i], numbers);
}
template <int W, typename To> static inline void store_floats(const float* from, To* to) {
  Vector<To, W> result;
#pragma unroll
  for (int i = 0; i < W; ++i) result.at[i] = convert<To>(from[i]);
  *reinterpret_cast<Vector<To, W>*>(to) = result;
}
#if ADDS_CODES
static inline void added_vector(const Vector<signed char, 4>& from, float* to, const StepNumbers& numbers) {
  const unsigned shifted = *reinterpret_cast<const unsigned*>(&from) ^ 0x80808080u;
  const float lowest = 8388608.0f + 128.0f + ADDED_ZERO;
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = (float_of_code(shifted, i) - lowest) * ADDED_SCALE;
}
#endif

// What a filter's sums are finished with.
struct Ends {
  const float *bias, *factors;
  const Added* residual;
  const StepNumbers& numbers;
  Results results;
  float finish_sum(float sum, float other, int filter) const {
    if (CODED) sum = HAS_ZERO ? sum * factors[filter] + factors[FILTERS + filter] : sum * factors[filter];
    if (HAS_BIAS && !LATE_BIAS) sum += bias[filter];
    return finish(sum, other, numbers, LATE_BIAS ? bias[filter] : 0.0f);
  }
  // W neighbours, of which the first stands at a multiple of W.
  template <int W> void store(const float* sums, int pixel, int filter) const {
    const i64 at = (i64)pixel * ROW_FILTERS + filter % ROW_FILTERS;
    Vector<Added, W> other;
    if (HAS_RESIDUAL) other = *reinterpret_cast<const Vector<Added, W>*>(residual + at);
    Vector<Result, W> result;
#pragma unroll
    for (int i = 0; i < W; ++i) result.at[i] = convert<Result>(finish_sum(sums[i], HAS_RESIDUAL ? added(other.at[i], numbers) : 0.0f, filter + i));
    *reinterpret_cast<Vector<Result, W>*>(results.of(filter / ROW_FILTERS) + at) = result;
  }
  void store_pair(float low, float high, int pixel, int filter) const {
    const float sums[2] = {low, high};
    if (ROW_FILTERS % 2 == 0) return store<2>(sums, pixel, filter);
    store<1>(sums, pixel, filter);  // pairs do not begin at multiples of two
    if (filter + 1 < FILTERS) store<1>(sums + 1, pixel, filter + 1);
  }

  // All filters of rows `row` to `end` of a block's tile, COLUMNS wide. A thread takes W neighbours, the same in every row; sums_of(whole,
  // row, column) gives their sums, pixel_of(row) the pixel, -1 where there is none, and added_of(row, column) what is added.
  template <int W, int COLUMNS, int THREADS, typename Sums, typename Pixel, typename Others>
  void finish_rows(int row, int end, int first_filter, const Sums& sums_of, const Pixel& pixel_of, const Others& added_of) const {
    static_assert(THREADS * W % COLUMNS == 0, "a thread's filters differ from row to row");
    constexpr int kStep = THREADS * W / COLUMNS, kTogether = 4;
    const int column = threadIdx.x * W % COLUMNS, filter = first_filter + column;
    if (filter >= FILTERS) return;
    float factor[W], shift[W], late[W];
#pragma unroll
    for (int i = 0; i < W; ++i) {
      factor[i] = CODED ? factors[filter + i] : 1.0f;
      shift[i] = (HAS_ZERO ? factors[FILTERS + filter + i] : 0.0f) + (HAS_BIAS && !LATE_BIAS ? bias[filter + i] : 0.0f);
      late[i] = LATE_BIAS ? bias[filter + i] : 0.0f;
    }
    Result* const to = results.of(filter / ROW_FILTERS) + filter % ROW_FILTERS;
    for (row += threadIdx.x * W / COLUMNS; row < end; row += kTogether * kStep) {
      // What is added comes for several rows at once.
      int pixels[kTogether];
      Vector<Added, W> others[kTogether];
#pragma unroll
      for (int turn = 0; turn < kTogether; ++turn) {
        pixels[turn] = row + turn * kStep < end ? pixel_of(row + turn * kStep) : -1;
        if (HAS_RESIDUAL && pixels[turn] >= 0) others[turn] = added_of(row + turn * kStep, column);
      }
#pragma unroll
      for (int turn = 0; turn < kTogether; ++turn) {
        if (pixels[turn] < 0) continue;
        float whole[W], other[W];
        sums_of(whole, row + turn * kStep, column);
        if (HAS_RESIDUAL) added_vector(others[turn], other, numbers);
#pragma unroll
        for (int i = 0; i < W; ++i) {
          const float sum = CODED ? whole[i] * factor[i] + shift[i] : whole[i] + shift[i];
          whole[i] = finish(sum, HAS_RESIDUAL ? other[i] : 0.0f, numbers, late[i]);
        }
        Result* const at = to + (i64)pixels[turn] * ROW_FILTERS;
        if (ENCODES && W % 4 == 0) {
          Vector<unsigned, (W + 3) / 4> codes;
#pragma unroll
          for (int i = 0; i < W / 4; ++i) codes.at[i] = FOUR_CODES(whole[4 * i], whole[4 * i + 1], whole[4 * i + 2], whole[4 * i + 3]);
          *reinterpret_cast<Vector<unsigned, (W + 3) / 4>*>(at) = codes;
        } else {
          store_floats<W>(whole, at);
        }
      }
    }
  }
  // The same with what is added from memory.
  template <int W, int COLUMNS, int THREADS, typename Sums, typename Pixel>
  void finish_rows(int row, int end, int first_filter, const Sums& sums_of, const Pixel& pixel_of) const {
    const auto added_of = [&](int at, int column) {
      return *reinterpret_cast<const Vector<Added, W>*>(residual + (i64)pixel_of(at) * ROW_FILTERS + (first_filter + column) % ROW_FILTERS);
    };
    finish_rows<W, COLUMNS, THREADS>(row, end, first_filter, sums_of, pixel_of, added_of);
  }
};
