// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/movement/resample.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/movement/resample.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <cstring>
#include <type_traits>

#include "backends/cpu/support/lanes-inl.h"
#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

template <typename From, typename To, int kTaps>
HWY_INLINE void mix_rows(const MixArgs& args) {
  const D d;
  const From* rows[kTaps];
  for (int k = 0; k < kTaps; ++k) rows[k] = static_cast<const From*>(args.rows[k]);
  To* y = static_cast<To*>(args.y);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= args.count; i += lanes) {
    V sum = hn::Mul(load(d, rows[0] + i), hn::Set(d, args.weights[0]));
    for (int k = 1; k < kTaps; ++k) sum = hn::MulAdd(load(d, rows[k] + i), hn::Set(d, args.weights[k]), sum);
    store(sum, d, y + i);
  }
  for (; i < args.count; ++i) {
    float sum = static_cast<float>(rows[0][i]) * args.weights[0];
    for (int k = 1; k < kTaps; ++k) sum += static_cast<float>(rows[k][i]) * args.weights[k];
    y[i] = To(sum);
  }
}

template <typename From, typename To>
void Mix(const MixArgs& args) {
  switch (args.taps) {
    case 1:
      if constexpr (std::is_same_v<From, To>)
        if (args.weights[0] == 1) {
          std::memcpy(args.y, args.rows[0], static_cast<size_t>(args.count) * sizeof(To));
          return;
        }
      return mix_rows<From, To, 1>(args);
    case 2: return mix_rows<From, To, 2>(args);
    case 3: return mix_rows<From, To, 3>(args);
    default: return mix_rows<From, To, 4>(args);
  }
}

HWY_INLINE V gather(D d, const float* row, const int32_t* indices) {
  return hn::GatherIndex(d, row, hn::LoadU(hn::RebindToSigned<D>(), indices));
}
/// There is no instruction that gathers elements of 16 bits.
HWY_INLINE V gather(D d, const BFloat* row, const int32_t* indices) {
  HWY_ALIGN float elements[kMaxLanes];
  for (size_t i = 0; i < hn::Lanes(d); ++i) elements[i] = static_cast<float>(row[indices[i]]);
  return hn::Load(d, elements);
}

template <typename From, typename To, int kTaps>
HWY_INLINE void stretch_elements(const StretchArgs& args) {
  const D d;
  const From* row = static_cast<const From*>(args.row);
  To* y = static_cast<To*>(args.y);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t x = 0;
  for (; x + lanes <= args.columns; x += lanes) {
    V sum = hn::Mul(gather(d, row, args.indices + x), hn::LoadU(d, args.weights + x));
    for (int k = 1; k < kTaps; ++k) {
      const int64_t at = k * args.columns + x;
      sum = hn::MulAdd(gather(d, row, args.indices + at), hn::LoadU(d, args.weights + at), sum);
    }
    store(sum, d, y + x);
  }
  for (; x < args.columns; ++x) {
    float sum = 0;
    for (int k = 0; k < kTaps; ++k)
      sum += static_cast<float>(row[args.indices[k * args.columns + x]]) * args.weights[k * args.columns + x];
    y[x] = To(sum);
  }
}

template <typename From, typename To>
void Stretch(const StretchArgs& args) {
  if (args.inner > 1) {
    for (int64_t x = 0; x < args.columns; ++x) {
      MixArgs mix{{}, {}, args.taps, args.inner, static_cast<To*>(args.y) + x * args.inner};
      for (int k = 0; k < args.taps; ++k) {
        mix.rows[k] = static_cast<const From*>(args.row) + args.indices[k * args.columns + x] * args.inner;
        mix.weights[k] = args.weights[k * args.columns + x];
      }
      Mix<From, To>(mix);
    }
    return;
  }
  switch (args.taps) {
    case 1: return stretch_elements<From, To, 1>(args);
    case 2: return stretch_elements<From, To, 2>(args);
    case 3: return stretch_elements<From, To, 3>(args);
    default: return stretch_elements<From, To, 4>(args);
  }
}

template <typename From>
ResampleKernels resample_from(DType to) {
  if (to == DType::bf16) return {Mix<From, BFloat>, Stretch<From, BFloat>};
  return {Mix<From, float>, Stretch<From, float>};
}

ResampleKernels ResampleTable(DType from, DType to) {
  return from == DType::bf16 ? resample_from<BFloat>(to) : resample_from<float>(to);
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(ResampleTable);

ResampleKernels resample_kernels(DType from, DType to, Isa isa) {
  return HWY_DISPATCH_TABLE(ResampleTable)[target_index(isa)](from, to);
}

}  // namespace hone::cpu
#endif
