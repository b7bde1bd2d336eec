// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/movement/interleave.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/movement/interleave.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <tuple>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
template <typename T>
using D = hn::CappedTag<T, 16 / sizeof(T)>;

template <typename T>
void Split(const T* from, int64_t channels, int64_t count, T* to, int64_t step) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    if (channels == 2) hn::LoadInterleaved2(d, from + i * 2, a, b);
    else if (channels == 3) hn::LoadInterleaved3(d, from + i * 3, a, b, c);
    else hn::LoadInterleaved4(d, from + i * 4, a, b, c, e);
    hn::StoreU(a, d, to + i);
    hn::StoreU(b, d, to + step + i);
    if (channels > 2) hn::StoreU(c, d, to + 2 * step + i);
    if (channels > 3) hn::StoreU(e, d, to + 3 * step + i);
  }
  for (; i < count; ++i)
    for (int64_t k = 0; k < channels; ++k) to[k * step + i] = from[i * channels + k];
}

template <typename T>
void Join(const T* from, int64_t step, int64_t channels, int64_t count, T* to) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto plane = [&](int64_t k, int64_t i) { return hn::LoadU(d, from + k * step + i); };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    if (channels == 2) hn::StoreInterleaved2(plane(0, i), plane(1, i), d, to + i * 2);
    else if (channels == 3) hn::StoreInterleaved3(plane(0, i), plane(1, i), plane(2, i), d, to + i * 3);
    else hn::StoreInterleaved4(plane(0, i), plane(1, i), plane(2, i), plane(3, i), d, to + i * 4);
  }
  for (; i < count; ++i)
    for (int64_t k = 0; k < channels; ++k) to[i * channels + k] = from[k * step + i];
}

using AllMoves = std::tuple<PixelMoves<uint8_t>, PixelMoves<uint16_t>, PixelMoves<uint32_t>>;
AllMoves MovesOfPixels() {
  return {PixelMoves<uint8_t>{Split<uint8_t>, Join<uint8_t>}, PixelMoves<uint16_t>{Split<uint16_t>, Join<uint16_t>},
          PixelMoves<uint32_t>{Split<uint32_t>, Join<uint32_t>}};
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(MovesOfPixels);

template <typename T>
const PixelMoves<T>& pixel_moves() {
  static const auto moves = HWY_DISPATCH_TABLE(MovesOfPixels)[target_index(Isa::scalar)]();
  return std::get<PixelMoves<T>>(moves);
}
template const PixelMoves<uint8_t>& pixel_moves();
template const PixelMoves<uint16_t>& pixel_moves();
template const PixelMoves<uint32_t>& pixel_moves();

}  // namespace hone::cpu
#endif
