// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/resample.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/resample.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <cstring>

#include "backends/cpu/kernels/targets.h"

HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

template <int kTaps>
HWY_INLINE void mix_rows(const MixArgs& args) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= args.count; i += lanes) {
    auto sum = hn::Mul(hn::LoadU(d, args.rows[0] + i), hn::Set(d, args.weights[0]));
    for (int k = 1; k < kTaps; ++k) sum = hn::MulAdd(hn::LoadU(d, args.rows[k] + i), hn::Set(d, args.weights[k]), sum);
    hn::StoreU(sum, d, args.y + i);
  }
  for (; i < args.count; ++i) {
    float sum = args.rows[0][i] * args.weights[0];
    for (int k = 1; k < kTaps; ++k) sum += args.rows[k][i] * args.weights[k];
    args.y[i] = sum;
  }
}

void Mix(const MixArgs& args) {
  switch (args.taps) {
    case 1:
      if (args.weights[0] == 1) {
        std::memcpy(args.y, args.rows[0], static_cast<size_t>(args.count) * sizeof(float));
        return;
      }
      return mix_rows<1>(args);
    case 2: return mix_rows<2>(args);
    case 3: return mix_rows<3>(args);
    default: return mix_rows<4>(args);
  }
}

template <int kTaps>
HWY_INLINE void stretch_elements(const StretchArgs& args) {
  const D d;
  const hn::RebindToSigned<D> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t x = 0;
  for (; x + lanes <= args.columns; x += lanes) {
    auto sum = hn::Mul(hn::GatherIndex(d, args.row, hn::LoadU(di, args.indices + x)), hn::LoadU(d, args.weights + x));
    for (int k = 1; k < kTaps; ++k) {
      const int64_t at = k * args.columns + x;
      sum = hn::MulAdd(hn::GatherIndex(d, args.row, hn::LoadU(di, args.indices + at)), hn::LoadU(d, args.weights + at),
                       sum);
    }
    hn::StoreU(sum, d, args.y + x);
  }
  for (; x < args.columns; ++x) {
    float sum = 0;
    for (int k = 0; k < kTaps; ++k)
      sum += args.row[args.indices[k * args.columns + x]] * args.weights[k * args.columns + x];
    args.y[x] = sum;
  }
}

void Stretch(const StretchArgs& args) {
  if (args.inner > 1) {
    for (int64_t x = 0; x < args.columns; ++x) {
      MixArgs mix{{}, {}, args.taps, args.inner, args.y + x * args.inner};
      for (int k = 0; k < args.taps; ++k) {
        mix.rows[k] = args.row + args.indices[k * args.columns + x] * args.inner;
        mix.weights[k] = args.weights[k * args.columns + x];
      }
      Mix(mix);
    }
    return;
  }
  switch (args.taps) {
    case 1: return stretch_elements<1>(args);
    case 2: return stretch_elements<2>(args);
    case 3: return stretch_elements<3>(args);
    default: return stretch_elements<4>(args);
  }
}

ResampleKernels ResampleTable() { return {Mix, Stretch}; }

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(ResampleTable);

ResampleKernels resample_kernels(Isa isa) { return HWY_DISPATCH_TABLE(ResampleTable)[target_index(isa)](); }

}  // namespace hone::cpu
#endif
