// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/signal/fast_transform.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/signal/fast_transform.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, static_cast<size_t>(kSignals)>;
using V = hn::Vec<D>;

struct Number {
  V re, im;
};
HWY_INLINE Number operator+(const Number& a, const Number& b) { return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)}; }
HWY_INLINE Number operator-(const Number& a, const Number& b) { return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)}; }
HWY_INLINE Number Times(const Number& a, const float* root) {
  const D d;
  const V re = hn::Set(d, root[0]), im = hn::Set(d, root[1]);
  return {hn::NegMulAdd(a.im, im, hn::Mul(a.re, re)), hn::MulAdd(a.im, re, hn::Mul(a.re, im))};
}
HWY_INLINE Number Load(const float* point) { return {hn::LoadU(D(), point), hn::LoadU(D(), point + kSignals)}; }
HWY_INLINE void Store(const Number& a, float* point) {
  hn::StoreU(a.re, D(), point);
  hn::StoreU(a.im, D(), point + kSignals);
}

/// One combination of `factor` points that lie `apart` floats from each other.
HWY_INLINE void Combine(const float* from, int64_t apart, float* to, int64_t step, int64_t factor, int64_t turn,
                        int64_t length, const float* roots) {
  const auto turned = [&](const Number& a, int64_t u) { return u * turn == 0 ? a : Times(a, roots + 2 * u * turn); };
  if (factor == 2) {
    const Number a = Load(from), b = Load(from + apart);
    Store(a + b, to);
    return Store(turned(a - b, 1), to + step);
  }
  if (factor == 4) {
    const Number a = Load(from), b = Load(from + apart), c = Load(from + 2 * apart), d = Load(from + 3 * apart);
    const Number ac = a + c, bd = b + d, a_c = a - c, b_d = b - d;
    const V quarter = hn::Set(D(), roots[2 * (length / 4) + 1]);  // a quarter turn is this times i
    const Number turned_b_d{hn::Neg(hn::Mul(b_d.im, quarter)), hn::Mul(b_d.re, quarter)};
    Store(ac + bd, to);
    Store(turned(a_c + turned_b_d, 1), to + step);
    Store(turned(ac - bd, 2), to + 2 * step);
    return Store(turned(a_c - turned_b_d, 3), to + 3 * step);
  }
  for (int64_t u = 0; u < factor; ++u) {
    Number sum = Load(from);
    int64_t at = 0;  // r * u modulo the factor
    for (int64_t r = 1; r < factor; ++r) {
      at = at + u >= factor ? at + u - factor : at + u;
      sum = sum + Times(Load(from + r * apart), roots + 2 * at * (length / factor));
    }
    Store(turned(sum, u), to + u * step);
  }
}

void PassOf(const float* from, float* to, int64_t n, int64_t stride, int64_t factor, int64_t length,
            const float* roots) {
  constexpr int64_t kPoint = 2 * kSignals;
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t m = n / factor;
  for (int64_t k = 0; k < m; ++k)
    for (int64_t q = 0; q < stride; ++q) {
      const float* x = from + (q + stride * k) * kPoint;
      float* y = to + (q + stride * factor * k) * kPoint;
      for (int64_t lane = 0; lane < kSignals; lane += lanes)
        Combine(x + lane, stride * m * kPoint, y + lane, stride * kPoint, factor, k * stride, length, roots);
    }
}

auto ThePass() { return PassOf; }

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {
namespace {

/// Odd ones first: what stands in the middle of a real signal's spectrum is then a sum of real numbers to the end.
std::vector<int64_t> factors_of(int64_t length) {
  std::vector<int64_t> factors;
  int64_t even = 1;
  for (; length % 2 == 0; length /= 2) even *= 2;
  for (int64_t factor = 3; length > 1; factor += 2) {
    if (factor * factor > length) factor = length;  // a prime
    for (; length % factor == 0; length /= factor) factors.push_back(factor);
  }
  for (; even % 4 == 0; even /= 4) factors.push_back(4);
  if (even == 2) factors.push_back(2);
  return factors;
}

}  // namespace

HWY_EXPORT(ThePass);

FastTransform::FastTransform(int64_t length, bool inverse, Isa isa)
    : length_(length), factors_(factors_of(length)), pass_(HWY_DISPATCH_TABLE(ThePass)[target_index(isa)]()) {
  for (int64_t i = 0; i < length; ++i) {
    const double angle = (inverse ? 2 : -2) * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length);
    roots_.push_back(static_cast<float>(std::cos(angle)));
    roots_.push_back(static_cast<float>(std::sin(angle)));
  }
}

float* FastTransform::operator()(float* from, float* to) const {
  int64_t n = length_, stride = 1;
  for (const int64_t factor : factors_) {
    pass_(from, to, n, stride, factor, length_, roots_.data());
    std::swap(from, to);
    n /= factor, stride *= factor;
  }
  return from;
}

}  // namespace hone::cpu
#endif
