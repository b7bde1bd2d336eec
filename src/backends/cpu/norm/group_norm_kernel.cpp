// SPDX-License-Identifier: Apache-2.0
//
// Sums run in floats over a few hundred numbers at most, then go on in doubles: images have too many pixels for one float.
#include "backends/cpu/norm/group_norm_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm/group_norm_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int64_t kRun = 1024, kRows = 64, kStrip = 64;

template <typename Term, typename ScalarTerm>
HWY_INLINE double long_sum(const float* x, int64_t n, const Term& term, const ScalarTerm& scalar) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  double total = 0;
  for (int64_t start = 0; start < n; start += kRun) {
    const int64_t end = std::min(n, start + kRun);
    V a = hn::Zero(d), b = hn::Zero(d);
    int64_t i = start;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      a = hn::Add(a, term(hn::LoadU(d, x + i)));
      b = hn::Add(b, term(hn::LoadU(d, x + i + lanes)));
    }
    float rest = 0;
    for (; i < end; ++i) rest += scalar(x[i]);
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)))) + static_cast<double>(rest);
  }
  return total;
}

double Sum(const float* x, int64_t n) {
  return long_sum(
      x, n, [](V v) HWY_ATTR { return v; }, [](float v) { return v; });
}

double Distance(const float* x, int64_t n, float centre) {
  const V c = hn::Set(D(), centre);
  return long_sum(
      x, n,
      [c](V v) HWY_ATTR {
        const V t = hn::Sub(v, c);
        return hn::Mul(t, t);
      },
      [centre](float v) { return (v - centre) * (v - centre); });
}

void Scale(const float* x, float* y, int64_t n, const Affine& a) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - a.centre) * a.factor + a.shift;
}

void ChannelSum(const ChannelSums& args) {
  float part[kStrip], centres[kStrip];
  for (int64_t c0 = 0; c0 < args.channels; c0 += kStrip) {
    const int64_t count = std::min(kStrip, args.channels - c0);
    for (int64_t c = 0; c < count; ++c) centres[c] = args.centres == nullptr ? 0.0f : args.centres[c0 + c];
    for (int64_t start = 0; start < args.rows; start += kRows) {
      const int64_t end = std::min(args.rows, start + kRows);
      std::fill_n(part, kStrip, 0.0f);
      for (int64_t row = start; row < end; ++row) {
        const float* x = args.x + row * args.step + c0;
        if (args.centres == nullptr) {
          for (int64_t c = 0; c < count; ++c) part[c] += x[c];
        } else {
          for (int64_t c = 0; c < count; ++c) part[c] += (x[c] - centres[c]) * (x[c] - centres[c]);
        }
      }
      for (int64_t c = 0; c < count; ++c) args.sums[c0 + c] += static_cast<double>(part[c]);
    }
  }
}

void ChannelScaled(const ChannelScale& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * args.step;
    float* y = args.y + row * args.step;
    for (int64_t c = 0; c < args.channels; ++c) y[c] = (x[c] - args.centres[c]) * args.factors[c] + args.shifts[c];
  }
}

void ChannelResponded(const ChannelResponse& args) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V factor = hn::Set(d, args.factor), beta = hn::Set(d, -args.beta), bias = hn::Set(d, args.bias);
  const auto response = [&](V x, V squares) HWY_ATTR {
    return hn::Mul(x, hn::Exp(d, hn::Mul(beta, hn::Log(d, hn::MulAdd(factor, squares, bias)))));
  };
  int64_t i = 0;
  for (; i + lanes <= args.count; i += lanes) {
    V squares = hn::Zero(d);
    for (int64_t k = 0; k < args.neighbours; ++k) {
      const V v = hn::LoadU(d, args.first + k * args.step + i);
      squares = hn::MulAdd(v, v, squares);
    }
    hn::StoreU(response(hn::LoadU(d, args.x + i), squares), d, args.y + i);
  }
  for (; i < args.count; ++i) {
    float squares = 0;
    for (int64_t k = 0; k < args.neighbours; ++k)
      squares += args.first[k * args.step + i] * args.first[k * args.step + i];
    args.y[i] = hn::GetLane(response(hn::Set(d, args.x[i]), hn::Set(d, squares)));
  }
}

GroupNormKernels GroupNormTable() { return {Sum, Distance, Scale, ChannelSum, ChannelScaled, ChannelResponded}; }

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(GroupNormTable);

GroupNormKernels group_norm_kernels(Isa isa) { return HWY_DISPATCH_TABLE(GroupNormTable)[target_index(isa)](); }

}  // namespace hone::cpu
#endif
