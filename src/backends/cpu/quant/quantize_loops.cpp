// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/quant/quantize_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/quant/quantize_loops.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "backends/cpu/support/lanes-inl.h"
#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

/// In four pairs of sums. What is not a number is the first operand, in whose place the second comes.
Range RangeOf(const float* x, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V low[4], high[4];
  for (int k = 0; k < 4; ++k) low[k] = high[k] = hn::Zero(d);
  const auto meet = [&](V v, int k) { low[k] = hn::Min(v, low[k]), high[k] = hn::Max(v, high[k]); };
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    for (int k = 0; k < 4; ++k) meet(load(d, x + i + k * lanes), k);
  for (; i + lanes <= count; i += lanes) meet(load(d, x + i), 0);
  if (i < count) meet(load_some(d, x + i, static_cast<size_t>(count - i), 0), 0);
  for (int k = 1; k < 4; ++k) meet(low[k], 0), meet(high[k], 0);
  return {hn::GetLane(hn::MinOfLanes(d, low[0])), hn::GetLane(hn::MaxOfLanes(d, high[0]))};
}

/// x / scale, to the nearest. Of a moderate x and scale by a product with the reciprocal and two steps from the remainder (Markstein),
/// which cost less than a division.
class Quotient {
 public:
  explicit Quotient(float scale)
      : scale_(hn::Set(D(), scale)),
        reciprocal_(hn::Set(D(), 1 / scale)),
        most_(hn::Set(D(), kMostSteps * scale)),
        divides_(!HWY_NATIVE_FMA || !(scale > 0x1p-30F && scale < 0x1p30F)) {}
  V operator()(V x) const {
    if (divides_) return hn::Div(x, scale_);
    const V near = hn::Min(most_, hn::Max(hn::Neg(most_), x));  // a NaN comes through as the second operand
    V q = hn::Mul(near, reciprocal_);
    for (int step = 0; step < 2; ++step) q = hn::MulAdd(hn::NegMulAdd(q, scale_, near), reciprocal_, q);
    return q;
  }

 private:
  static constexpr float kMostSteps = 1024;  // which saturate with every zero point
  V scale_, reciprocal_, most_;
  bool divides_;
};

/// Steps become codes by an addition that leaves a float no digits behind the point: the lowest byte of the sum is the step's. What is
/// not a number becomes code 0.
template <typename T>
void Quantize(const float* x, T* y, int64_t count, float scale, float zero) {
  const D d;
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<uint8_t, D> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Quotient quotient(scale);
  const V low = hn::Set(d, static_cast<float>(std::numeric_limits<T>::min()) - zero),
          high = hn::Set(d, static_cast<float>(std::numeric_limits<T>::max()) - zero), whole = hn::Set(d, 0x1.8p23F);
  const auto shift = hn::Set(bits, static_cast<uint32_t>(static_cast<int32_t>(zero)));
  const auto quantized = [&](V v) {
    const V steps = quotient(v);
    const auto sum = hn::BitCast(bits, hn::Add(hn::Min(hn::Max(steps, low), high), whole));
    const auto code = hn::IfThenElseZero(hn::RebindMask(bits, hn::Eq(steps, steps)), hn::Add(sum, shift));
    return hn::TruncateTo(bytes, code);
  };
  uint8_t* to = reinterpret_cast<uint8_t*>(y);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(quantized(load(d, x + i)), bytes, to + i);
  if (i == count) return;
  HWY_ALIGN uint8_t last[kMaxLanes];
  hn::StoreU(quantized(load_some(d, x + i, static_cast<size_t>(count - i), 0)), bytes, last);
  std::copy(last, last + (count - i), to + i);
}

template <typename T>
void Dequantize(const T* x, float* y, int64_t count, float scale, float zero) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V factor = hn::Set(d, scale), shift = hn::Set(d, zero);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Mul(hn::Sub(load(d, x + i), shift), factor), d, y + i);
  for (; i < count; ++i) y[i] = (static_cast<float>(x[i]) - zero) * scale;
}

QuantizeLoops Loops() {
  return {RangeOf, Quantize<uint8_t>, Quantize<int8_t>, Dequantize<uint8_t>, Dequantize<int8_t>};
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(Loops);

QuantizeLoops quantize_loops(Isa isa) { return HWY_DISPATCH_TABLE(Loops)[target_index(isa)](); }

}  // namespace hone::cpu
#endif
