// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/movement/pixel_mix.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/movement/pixel_mix.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, kMixSlack>;

template <int kVectors>
HWY_INLINE void mix_columns(const MixedPixels& args, int64_t first) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (int64_t k = 0; k < args.count; ++k) {
    const float* pixel = args.image + args.pixels[k] * args.channels + first;
    const auto weight = hn::Set(d, args.weights[k]);
    for (int i = 0; i < kVectors; ++i) sums[i] = hn::MulAdd(hn::LoadU(d, pixel + i * lanes), weight, sums[i]);
  }
  for (int i = 0; i < kVectors; ++i) hn::StoreU(sums[i], d, args.y + first + i * lanes);
}

/// The last vector may go past the channels: what it writes there the next sample overwrites.
void Mix(const MixedPixels& args) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t c = 0;
  for (; c + 4 * lanes <= args.channels; c += 4 * lanes) mix_columns<4>(args, c);
  for (; c < args.channels; c += lanes) mix_columns<1>(args, c);
}

PixelKernels KernelsOfPixels() { return {Mix}; }

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(KernelsOfPixels);

PixelKernels pixel_kernels(Isa isa) { return HWY_DISPATCH_TABLE(KernelsOfPixels)[target_index(isa)](); }

PixelMajor::PixelMajor(int64_t images, int64_t channels, int64_t area)
    : size_(images * channels * area),
      copy_(
          {.sizes = {images, area, channels}, .from = {channels * area, 1, area}, .to = {channels * area, channels, 1}},
          sizeof(float)) {}

}  // namespace hone::cpu
#endif
