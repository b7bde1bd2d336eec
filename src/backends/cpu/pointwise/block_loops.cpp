// SPDX-License-Identifier: Apache-2.0
//
// Plain loops that the compiler vectorises, and Highway's elementary functions for f32. Where one of those is good for some numbers
// only, a block that holds others goes to the C library.
#include "backends/cpu/pointwise/block_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pointwise/block_loops.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
constexpr bool kFloat = std::is_floating_point_v<T>;
template <typename T>
constexpr bool kTruth = std::is_same_v<T, uint8_t>;

/// Integers wrap.
template <typename T, typename Operation>
HWY_INLINE T Wrapping(T a, T b, Operation operation) {
  if constexpr (kFloat<T>) return operation(a, b);
  else {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(operation(static_cast<U>(a), static_cast<U>(b)));
  }
}

/// What the compiler vectorises as it stands.
template <ExprKind kind, typename T>
HWY_INLINE T Apply(T a, T b, T c) {
  if constexpr (kind == ExprKind::add) return Wrapping(a, b, [](auto x, auto y) { return x + y; });
  if constexpr (kind == ExprKind::subtract) return Wrapping(a, b, [](auto x, auto y) { return x - y; });
  if constexpr (kind == ExprKind::multiply) return Wrapping(a, b, [](auto x, auto y) { return x * y; });
  if constexpr (kind == ExprKind::negate)
    return kFloat<T> ? -a : Wrapping(T(0), a, [](auto x, auto y) { return x - y; });
  if constexpr (kind == ExprKind::absolute) {
    if constexpr (kFloat<T>) return std::fabs(a);
    else return a < 0 ? Wrapping(T(0), a, [](auto x, auto y) { return x - y; }) : a;
  }
  if constexpr (kind == ExprKind::minimum) return a != a ? a : (b < a) | (b != b) ? b : a;
  if constexpr (kind == ExprKind::maximum) return a != a ? a : (a < b) | (b != b) ? b : a;
  if constexpr (kind == ExprKind::sign) return a != a ? a : T((a > 0) - (a < 0));
  if constexpr (kind == ExprKind::less) return T(a < b);
  if constexpr (kind == ExprKind::less_equal) return T(a <= b);
  if constexpr (kind == ExprKind::equal) return T(a == b);
  if constexpr (kind == ExprKind::not_equal) return T(a != b);
  if constexpr (kind == ExprKind::logical_not) return T(a == 0);
  if constexpr (kind == ExprKind::logical_and) return T((a != 0) & (b != 0));
  if constexpr (kind == ExprKind::logical_or) return T((a != 0) | (b != 0));
  if constexpr (kind == ExprKind::is_nan) return T(a != a);
  if constexpr (kind == ExprKind::select) return a != 0 ? b : c;
  if constexpr (kind == ExprKind::divide) return a / b;
  if constexpr (kind == ExprKind::reciprocal) return 1 / a;
  if constexpr (kind == ExprKind::sqrt) return std::sqrt(a);
  if constexpr (kind == ExprKind::floor) return std::floor(a);
  if constexpr (kind == ExprKind::ceil) return std::ceil(a);
  if constexpr (kind == ExprKind::round_even) return std::nearbyint(a);
}

template <ExprKind kind>
constexpr int kOperands = kind < ExprKind::add      ? 1
                          : kind < ExprKind::select ? 2
                                                    : 3;

template <ExprKind kind, typename T>
void Plain(const void* av, const void* bv, const void* cv, void* dv, int64_t count) {
  const T *a = static_cast<const T*>(av), *b = static_cast<const T*>(bv), *c = static_cast<const T*>(cv);
  T* d = static_cast<T*>(dv);
  if constexpr (kOperands<kind> == 1)
    for (int64_t i = 0; i < count; ++i) d[i] = Apply<kind, T>(a[i], T(0), T(0));
  else if constexpr (kOperands<kind> == 2)
    for (int64_t i = 0; i < count; ++i) d[i] = Apply<kind, T>(a[i], b[i], T(0));
  else
    for (int64_t i = 0; i < count; ++i) d[i] = Apply<kind, T>(a[i], b[i], c[i]);
}

// ---- quotients of integers: as doubles where those hold the operands, which vectors divide ----

constexpr int64_t kExact = int64_t{1} << 51;

template <typename T>
HWY_INLINE T Quotient(T a, T b) {
  if (b == 0) return 0;
  return b == -1 ? Wrapping(T(0), a, [](auto x, auto y) { return x - y; }) : static_cast<T>(a / b);
}
template <ExprKind kind, typename T>
HWY_INLINE T Divided(T a, T b) {
  if constexpr (kind == ExprKind::divide) return Quotient(a, b);
  if (b == 0 || b == -1) return 0;
  const T rest = static_cast<T>(a % b);
  if constexpr (kind == ExprKind::modulo_trunc) return rest;
  return static_cast<T>(rest != 0 && (a < 0) != (b < 0) ? rest + b : rest);
}

template <typename T>
HWY_INLINE bool AreExact(const T* a, int64_t count) {
  if constexpr (sizeof(T) < 8) return true;
  T low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) low = a[i] < low ? a[i] : low, high = a[i] > high ? a[i] : high;
  return low > -kExact && high < kExact;
}

template <ExprKind kind, typename T>
void Division(const void* av, const void* bv, const void*, void* dv, int64_t count) {
  const T *a = static_cast<const T*>(av), *b = static_cast<const T*>(bv);
  T* d = static_cast<T*>(dv);
  if (!AreExact(a, count) || !AreExact(b, count)) {
    for (int64_t i = 0; i < count; ++i) d[i] = Divided<kind, T>(a[i], b[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const bool special = (b[i] == 0) | (b[i] == -1);
    const double x = static_cast<double>(a[i]), y = special ? 1.0 : static_cast<double>(b[i]);
    double quotient = std::trunc(x / y), rest = x - quotient * y;
    // A quotient that is rounded up to a whole number is one too large.
    const double step = ((rest < 0) & (x > 0)) | ((rest > 0) & (x < 0)) ? ((x < 0) != (y < 0) ? -1.0 : 1.0) : 0.0;
    quotient -= step, rest += step * y;
    if constexpr (kind == ExprKind::divide) {
      const T negative = Wrapping(T(0), a[i], [](auto u, auto v) { return u - v; });
      d[i] = b[i] == 0 ? T(0) : b[i] == -1 ? negative : static_cast<T>(quotient);
    } else if constexpr (kind == ExprKind::modulo_trunc) {
      d[i] = static_cast<T>(rest);
    } else {
      d[i] = static_cast<T>(((rest < 0) & (y > 0)) | ((rest > 0) & (y < 0)) ? rest + y : rest);
    }
  }
}

// ---- elementary functions of f32 ----

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

template <ExprKind kind>
HWY_INLINE float Scalar(float a, float b) {
  const double x = a, y = b;
  if constexpr (kind == ExprKind::sin) return static_cast<float>(std::sin(x));
  if constexpr (kind == ExprKind::cos) return static_cast<float>(std::cos(x));
  if constexpr (kind == ExprKind::tan) return static_cast<float>(std::tan(x));
  if constexpr (kind == ExprKind::asin) return static_cast<float>(std::asin(x));
  if constexpr (kind == ExprKind::acos) return static_cast<float>(std::acos(x));
  if constexpr (kind == ExprKind::atan) return static_cast<float>(std::atan(x));
  if constexpr (kind == ExprKind::sinh) return static_cast<float>(std::sinh(x));
  if constexpr (kind == ExprKind::cosh) return static_cast<float>(std::cosh(x));
  if constexpr (kind == ExprKind::asinh) return static_cast<float>(std::asinh(x));
  if constexpr (kind == ExprKind::acosh) return static_cast<float>(std::acosh(x));
  if constexpr (kind == ExprKind::atanh) return static_cast<float>(std::atanh(x));
  if constexpr (kind == ExprKind::exp) return static_cast<float>(std::exp(x));
  if constexpr (kind == ExprKind::log) return static_cast<float>(std::log(x));
  if constexpr (kind == ExprKind::tanh) return static_cast<float>(std::tanh(x));
  if constexpr (kind == ExprKind::erf) return static_cast<float>(std::erf(x));
  if constexpr (kind == ExprKind::power) return static_cast<float>(std::pow(x, y));
  if constexpr (kind == ExprKind::modulo_trunc) return static_cast<float>(std::fmod(x, y));
  if constexpr (kind == ExprKind::modulo_floor) {
    const double rest = std::fmod(x, y);
    return static_cast<float>(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
  }
}

/// For which numbers there is a result; elsewhere it is not a number.
template <ExprKind kind>
HWY_INLINE M IsDefined(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  if constexpr (kind == ExprKind::acosh) return hn::Ge(x, one);
  return hn::Le(hn::Abs(x), one);
}
template <ExprKind kind>
constexpr bool kIsPartial =
    kind == ExprKind::asin || kind == ExprKind::acos || kind == ExprKind::acosh || kind == ExprKind::atanh;

/// For which of those Highway's function is good to a few units in the last place.
template <ExprKind kind>
HWY_INLINE M IsGood(D d, V x) {
  const V size = hn::Abs(x);
  switch (kind) {
    case ExprKind::sin:
    case ExprKind::cos:
    case ExprKind::tan: return hn::Lt(size, hn::Set(d, 30000.0F));
    case ExprKind::asin:
    case ExprKind::acos: return hn::Le(size, hn::Set(d, 1.0F));
    case ExprKind::atanh: return hn::Lt(size, hn::Set(d, 1.0F));
    case ExprKind::sinh:
    case ExprKind::cosh:
    case ExprKind::exp: return hn::Lt(size, hn::Set(d, 85.0F));
    case ExprKind::acosh: return hn::And(hn::Ge(x, hn::Set(d, 1.0F)), hn::Lt(x, hn::Set(d, 1e18F)));
    case ExprKind::log: return hn::And(hn::Ge(x, hn::Set(d, 1.2e-38F)), hn::Lt(x, hn::Set(d, 3e38F)));
    default: return hn::Lt(size, hn::Set(d, 1e18F));
  }
}

template <ExprKind kind>
HWY_INLINE V Vector(D d, V x) {
  switch (kind) {
    case ExprKind::sin: return hn::Sin(d, x);
    case ExprKind::cos: return hn::Cos(d, x);
    case ExprKind::tan: return hn::Div(hn::Sin(d, x), hn::Cos(d, x));
    case ExprKind::asin: return hn::Asin(d, x);
    case ExprKind::acos: return hn::Acos(d, x);
    case ExprKind::atan: return hn::Atan(d, x);
    case ExprKind::sinh: return hn::Sinh(d, x);
    case ExprKind::asinh: return hn::Asinh(d, x);
    case ExprKind::acosh: return hn::Acosh(d, x);
    case ExprKind::atanh: return hn::Atanh(d, x);
    case ExprKind::exp: return hn::Exp(d, x);
    case ExprKind::log: return hn::Log(d, x);
    case ExprKind::tanh: return hn::Tanh(d, x);
    default: break;
  }
  const V power = hn::Exp(d, x), half = hn::Set(d, 0.5F);  // cosh
  return hn::MulAdd(power, half, hn::Div(half, power));
}

template <ExprKind kind>
void Elementary(const void* av, const void*, const void*, void* dv, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* a = static_cast<const float*>(av);
  float* to = static_cast<float*>(dv);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    V x = hn::LoadU(d, a + i);
    [[maybe_unused]] M defined = hn::Eq(x, x);
    if constexpr (kIsPartial<kind>) {
      defined = IsDefined<kind>(d, x);
      x = hn::IfThenElse(defined, x, hn::Set(d, kind == ExprKind::acosh ? 1.0F : 0.0F));
    }
    if (HWY_LIKELY(hn::AllTrue(d, IsGood<kind>(d, x)))) {
      V y = Vector<kind>(d, x);
      if constexpr (kIsPartial<kind>)
        y = hn::IfThenElse(defined, y, hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
      hn::StoreU(y, d, to + i);
    } else
      for (int64_t k = i; k < i + lanes; ++k) to[k] = Scalar<kind>(a[k], 0);
  }
  for (; i < count; ++i) to[i] = Scalar<kind>(a[i], 0);
}

template <ExprKind kind>
void Library(const void* av, const void* bv, const void*, void* dv, int64_t count) {
  const float *a = static_cast<const float*>(av), *b = static_cast<const float*>(bv);
  for (int64_t i = 0; i < count; ++i) static_cast<float*>(dv)[i] = Scalar<kind>(a[i], kOperands<kind> == 2 ? b[i] : 0);
}

struct Extremes {
  float low, high;
  bool numbers;  // all of them
};

Extremes ExtremesOf(const float* from, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V low = hn::Set(d, std::numeric_limits<float>::infinity()), high = hn::Neg(low);
  M numbers = hn::Eq(low, low);
  const auto take = [&](V x) HWY_ATTR {
    low = hn::Min(low, x), high = hn::Max(high, x), numbers = hn::And(numbers, hn::Eq(x, x));
  };
  for (int64_t i = 0; i + lanes <= count; i += lanes) take(hn::LoadU(d, from + i));
  for (int64_t i = count / lanes * lanes; i < count; ++i) take(hn::Set(d, from[i]));
  return {hn::GetLane(hn::MinOfLanes(d, low)), hn::GetLane(hn::MaxOfLanes(d, high)), hn::AllTrue(d, numbers)};
}

/// x^y = e^(y log x) in doubles, where both are ordinary and x is positive; a square where all exponents are 2.
void Power(const void* av, const void* bv, const void* cv, void* dv, int64_t count) {
  const float *a = static_cast<const float*>(av), *b = static_cast<const float*>(bv);
  float* to = static_cast<float*>(dv);
  const Extremes exponents = ExtremesOf(b, count);
  if (exponents.numbers && exponents.low == 2 && exponents.high == 2)
    return Plain<ExprKind::multiply, float>(av, av, cv, dv, count);
  const Extremes bases = ExtremesOf(a, count);
  if (!exponents.numbers || !bases.numbers || bases.low < 1e-30F || bases.high > 1e30F || exponents.low < -8 ||
      exponents.high > 8)
    return Library<ExprKind::power>(av, bv, cv, dv, count);
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = hn::PromoteTo(d, hn::LoadU(narrow, a + i)), y = hn::PromoteTo(d, hn::LoadU(narrow, b + i));
    hn::StoreU(hn::DemoteTo(narrow, hn::Exp(d, hn::Mul(y, hn::Log(d, x)))), narrow, to + i);
  }
  for (; i < count; ++i) to[i] = Scalar<ExprKind::power>(a[i], b[i]);
}

/// The rest of a quotient below 2^28, which doubles give exactly.
template <ExprKind kind>
void Rest(const void* av, const void* bv, const void* cv, void* dv, int64_t count) {
  constexpr float kMost = 1 << 28;
  const float *a = static_cast<const float*>(av), *b = static_cast<const float*>(bv);
  float* to = static_cast<float*>(dv);
  bool good = true;
  for (int64_t i = 0; i < count; ++i) good &= std::fabs(a[i] / b[i]) < kMost && std::fabs(b[i]) < 1e30F;
  if (!good) return Library<kind>(av, bv, cv, dv, count);
  for (int64_t i = 0; i < count; ++i) {
    const double x = a[i], y = b[i], rest = x - std::trunc(x / y) * y;
    const bool other = kind == ExprKind::modulo_floor && (((rest < 0) & (y > 0)) | ((rest > 0) & (y < 0)));
    to[i] = static_cast<float>(other ? rest + y : std::copysign(rest, x));
  }
}

// ---- the table ----

template <ExprKind kind>
constexpr bool kIsPlain =
    kind == ExprKind::add || kind == ExprKind::subtract || kind == ExprKind::multiply || kind == ExprKind::negate ||
    kind == ExprKind::absolute || kind == ExprKind::minimum || kind == ExprKind::maximum || kind == ExprKind::sign ||
    kind == ExprKind::logical_not || kind == ExprKind::is_nan || kind >= ExprKind::less;
template <ExprKind kind>
constexpr bool kIsPlainFloat = kind == ExprKind::divide || kind == ExprKind::reciprocal || kind == ExprKind::sqrt ||
                               kind == ExprKind::floor || kind == ExprKind::ceil || kind == ExprKind::round_even;
template <ExprKind kind>
constexpr bool kIsTruth =
    kind == ExprKind::minimum || kind == ExprKind::maximum || kind == ExprKind::logical_not || kind >= ExprKind::less;
template <ExprKind kind>
constexpr bool kIsDivision =
    kind == ExprKind::divide || kind == ExprKind::modulo_floor || kind == ExprKind::modulo_trunc;

template <ExprKind kind, typename T>
constexpr BlockLoop LoopOf() {
  if constexpr (kind <= ExprKind::input || kind > ExprKind::select) return nullptr;
  else if constexpr (kTruth<T>) {
    if constexpr (kIsTruth<kind>) return Plain<kind, T>;
    else return nullptr;
  } else if constexpr (kIsPlain<kind> || (kFloat<T> && kIsPlainFloat<kind>)) {
    return Plain<kind, T>;
  } else if constexpr (!kFloat<T>) {
    if constexpr (kIsDivision<kind>) return Division<kind, T>;
    else return nullptr;
  } else if constexpr (std::is_same_v<T, float>) {
    if constexpr (kind == ExprKind::power) return Power;
    else if constexpr (kIsDivision<kind>) return Rest<kind>;
    else if constexpr (kind == ExprKind::erf) return Library<kind>;
    else return Elementary<kind>;
  } else {
    return nullptr;
  }
}

constexpr size_t kKinds = static_cast<size_t>(ExprKind::select) + 1;
template <typename T, size_t... kinds>
constexpr std::array<BlockLoop, kKinds> RowOf(std::index_sequence<kinds...>) {
  return {LoopOf<static_cast<ExprKind>(kinds), T>()...};
}

BlockLoop BlockLoopOf(ExprKind kind, Domain domain) {
  constexpr auto kAll = std::make_index_sequence<kKinds>();
  static constexpr std::array<BlockLoop, kKinds> kTable[] = {
      RowOf<float>(kAll), RowOf<double>(kAll), RowOf<int32_t>(kAll), RowOf<int64_t>(kAll), RowOf<uint8_t>(kAll)};
  return kTable[static_cast<size_t>(domain)][static_cast<size_t>(kind)];
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(BlockLoopOf);

BlockLoop block_loop(ExprKind kind, Domain domain, Isa isa) {
  return HWY_DISPATCH_TABLE(BlockLoopOf)[target_index(isa)](kind, domain);
}

}  // namespace hone::cpu
#endif
