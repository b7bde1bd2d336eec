// SPDX-License-Identifier: Apache-2.0
//
// One pass of the preprocessor per instruction set; see Highway's quick reference. Tails go through a small buffer, so that
// nothing is read or written past an end.
#include "backends/cpu/norm/vector_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm/vector_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/support/exp-inl.h"
#include "backends/cpu/support/lanes-inl.h"
#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// Sum over a row of what `step(i)` gives for the vector there and `rest(i, count)` for what is left, in two accumulators.
template <typename Step, typename Rest>
HWY_INLINE float sum_steps(size_t n, const Step& step, const Rest& rest) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V a = hn::Zero(d), b = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Add(a, step(i));
    b = hn::Add(b, step(i + lanes));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Add(a, step(i));
  if (i < n) b = hn::Add(b, rest(i, n - i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
}

/// Sum of f(x) over a row.
template <typename F>
HWY_INLINE float sum_row(const float* x, size_t n, float fill, const F& f) {
  const D d;
  return sum_steps(
      n, [&](size_t i) { return f(hn::LoadU(d, x + i)); },
      [&](size_t i, size_t count) { return f(load_some(d, x + i, count, fill)); });
}

template <bool kLog>
void SoftmaxRow(const SoftmaxLines& args) {
  const D d;
  const size_t n = static_cast<size_t>(args.n), lanes = hn::Lanes(d), whole = n / lanes * lanes;
  V top0 = hn::Set(d, kLowest), top1 = top0;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    top0 = hn::Max(top0, hn::LoadU(d, args.x + i));
    top1 = hn::Max(top1, hn::LoadU(d, args.x + i + lanes));
  }
  for (; i < whole; i += lanes) top0 = hn::Max(top0, hn::LoadU(d, args.x + i));
  if (whole < n) top1 = hn::Max(top1, load_some(d, args.x + whole, n - whole, kLowest));
  const V top = hn::MaxOfLanes(d, hn::Max(top0, top1));
  const auto weight = [&](V x) { return exp_below_zero(d, hn::Sub(x, top)); };
  const float total = sum_steps(
      n,
      [&](size_t at) {
        const V e = weight(hn::LoadU(d, args.x + at));
        if (!kLog) hn::StoreU(e, d, args.y + at);
        return e;
      },
      [&](size_t at, size_t count) {
        const V e = weight(load_some(d, args.x + at, count, kLowest));
        if (!kLog) store_some(e, d, args.y + at, count);
        return e;
      });
  const V factor = hn::Set(d, 1 / total), shift = kLog ? hn::Add(top, hn::Set(d, std::log(total))) : top;
  const auto result = [&](const float* x, const float* y) {
    return kLog ? hn::Sub(hn::LoadU(d, x), shift) : hn::Mul(hn::LoadU(d, y), factor);
  };
  for (i = 0; i < whole; i += lanes) hn::StoreU(result(args.x + i, args.y + i), d, args.y + i);
  const float scalar_shift = hn::GetLane(shift);
  for (i = whole; i < n; ++i) args.y[i] = kLog ? args.x[i] - scalar_shift : args.y[i] / total;
}

/// One vector of columns, all the way down and three times.
template <bool kLog>
HWY_INLINE void softmax_strip(const SoftmaxLines& args, int64_t column, size_t count) {
  const D d;
  const bool whole = count == hn::Lanes(d);
  const auto at = [&](const float* base, int64_t i) {
    return whole ? hn::LoadU(d, base + i * args.inner + column)
                 : load_some(d, base + i * args.inner + column, count, 0);
  };
  const auto put = [&](V v, int64_t i) {
    float* to = args.y + i * args.inner + column;
    if (whole) hn::StoreU(v, d, to);
    else store_some(v, d, to, count);
  };
  V top = hn::Set(d, kLowest), sum = hn::Zero(d);
  for (int64_t i = 0; i < args.n; ++i) top = hn::Max(top, at(args.x, i));
  for (int64_t i = 0; i < args.n; ++i) {
    const V e = exp_below_zero(d, hn::Sub(at(args.x, i), top));
    sum = hn::Add(sum, e);
    if (!kLog) put(e, i);
  }
  const V factor = hn::Div(hn::Set(d, 1.0f), sum), shift = kLog ? hn::Add(top, hn::Log(d, sum)) : top;
  for (int64_t i = 0; i < args.n; ++i) put(kLog ? hn::Sub(at(args.x, i), shift) : hn::Mul(at(args.y, i), factor), i);
}

template <bool kLog>
void SoftmaxColumns(const SoftmaxLines& args) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t column = 0; column < args.columns; column += lanes)
    softmax_strip<kLog>(args, column, static_cast<size_t>(std::min(lanes, args.columns - column)));
}

template <typename Step, typename Rest>
HWY_INLINE void for_row(size_t n, size_t lanes, const Step& step, const Rest& rest) {
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) step(i);
  if (i < n) rest(i, n - i);
}

template <bool kCentred>
void Norm(const NormArgs& args) {
  const D d;
  const size_t n = static_cast<size_t>(args.n);
  for (int64_t row = 0; row < args.count; ++row) {
    const float* x = args.x + row * args.n;
    float* y = args.y + row * args.n;
    const float mean = kCentred ? sum_row(x, n, 0, [](V v) { return v; }) / static_cast<float>(n) : 0.0f;
    const V centre = hn::Set(d, mean);
    const float square = sum_row(x, n, mean, [&](V v) {
      const V t = hn::Sub(v, centre);
      return hn::Mul(t, t);
    });
    const V factor = hn::Set(d, 1 / std::sqrt(square / static_cast<float>(n) + args.epsilon));
    const auto result = [&](V v, V scale, V bias) {
      return hn::MulAdd(hn::Mul(hn::Sub(v, centre), factor), scale, bias);
    };
    const V one = hn::Set(d, 1.0f), none = hn::Zero(d);
    for_row(
        n, hn::Lanes(d),
        [&](size_t i) {
          hn::StoreU(result(hn::LoadU(d, x + i), args.scale != nullptr ? hn::LoadU(d, args.scale + i) : one,
                            args.bias != nullptr ? hn::LoadU(d, args.bias + i) : none),
                     d, y + i);
        },
        [&](size_t i, size_t count) {
          store_some(result(load_some(d, x + i, count, 0),
                            args.scale != nullptr ? load_some(d, args.scale + i, count, 0) : one,
                            args.bias != nullptr ? load_some(d, args.bias + i, count, 0) : none),
                     d, y + i, count);
        });
  }
}

/// What floats cannot hold is summed up once more in double.
template <bool kSquares>
double ExactNorm(const float* x, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += kSquares ? static_cast<double>(x[i]) * x[i] : std::fabs(x[i]);
  return kSquares ? std::sqrt(sum) : sum;
}

template <bool kSquares>
void LpNorm(const NormArgs& args) {
  const D d;
  const size_t n = static_cast<size_t>(args.n);
  for (int64_t row = 0; row < args.count; ++row) {
    const float* x = args.x + row * args.n;
    float* y = args.y + row * args.n;
    const float sum = sum_row(x, n, 0, [](V v) { return kSquares ? hn::Mul(v, v) : hn::Abs(v); });
    double norm = kSquares ? std::sqrt(sum) : sum;
    if (!(sum > 1e-30F && sum < 1e30F)) norm = ExactNorm<kSquares>(x, n);
    const double inverse = norm == 0 ? 0 : 1 / norm;
    if (inverse > 1e30) {  // more than a float holds
      for (size_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] * inverse);
      continue;
    }
    const V factor = hn::Set(d, static_cast<float>(inverse));
    for_row(
        n, hn::Lanes(d), [&](size_t i) { hn::StoreU(hn::Mul(hn::LoadU(d, x + i), factor), d, y + i); },
        [&](size_t i, size_t count) { store_some(hn::Mul(load_some(d, x + i, count, 0), factor), d, y + i, count); });
  }
}

VectorKernels Kernels() {
  return {SoftmaxRow<false>, SoftmaxColumns<false>, SoftmaxRow<true>, SoftmaxColumns<true>,
          Norm<true>,        Norm<false>,           LpNorm<false>,    LpNorm<true>};
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(Kernels);

namespace {

VectorKernels make_kernels(Isa isa) { return HWY_DISPATCH_TABLE(Kernels)[target_index(isa)](); }

}  // namespace

const VectorKernels& vector_kernels(Isa isa) {
  static const VectorKernels kernels[] = {make_kernels(Isa::scalar), make_kernels(Isa::avx2),
                                          make_kernels(Isa::avx512)};
  return kernels[static_cast<size_t>(isa)];
}

}  // namespace hone::cpu
#endif
