// SPDX-License-Identifier: Apache-2.0
//
// Loads of f32 lanes whose memory is f32, bf16 or bytes, and stores to f32 or bf16, whole and partial. Included once per instruction set, behind
// foreach_target. Rounding to bf16 is to nearest even; NaN stays a quiet NaN.
#if defined(HONE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HONE_LANES_INL_H_
#undef HONE_LANES_INL_H_
#else
#define HONE_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>
#include <type_traits>

#include "tensor/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);

HWY_INLINE V load(D d, const float* from) { return hn::LoadU(d, from); }
HWY_INLINE V load(D d, const BFloat* from) {
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<uint16_t, D> half;
  const auto words = hn::LoadU(half, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, words)));
}

template <typename T>
HWY_INLINE V load_bytes(D d, const T* from) {
  return hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(hn::Rebind<T, D>(), from)));
}
HWY_INLINE V load(D d, const uint8_t* from) { return load_bytes(d, from); }
HWY_INLINE V load(D d, const int8_t* from) { return load_bytes(d, from); }

HWY_INLINE void store(V v, D d, float* to) { hn::StoreU(v, d, to); }
HWY_INLINE void store(V v, D, BFloat* to) {
  const hn::RebindToUnsigned<D> d;
  const hn::Rebind<uint16_t, D> half;
  const auto bits = hn::BitCast(d, v), odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto rounded = hn::Add(hn::Add(bits, odd), hn::Set(d, 0x7fff)), quiet = hn::Or(bits, hn::Set(d, 0x00400000));
  const auto kept = hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(v)), quiet, rounded);
  hn::StoreU(hn::TruncateTo(half, hn::ShiftRight<16>(kept)), half, reinterpret_cast<uint16_t*>(to));
}

/// Whether parts of a vector of floats are read and written by masks that keep the rest from being touched.
constexpr bool kMasksMemory = HWY_TARGET <= HWY_AVX2;

HWY_INLINE V load_some(D d, const float* from, size_t count, float fill) {
  if constexpr (kMasksMemory) {
    const auto mask = hn::FirstN(d, count);
    return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, from), hn::Set(d, fill));
  }
  HWY_ALIGN float buffer[kMaxLanes];
  hn::Store(hn::Set(d, fill), d, buffer);
  std::memcpy(buffer, from, count * sizeof(float));
  return hn::Load(d, buffer);
}
HWY_INLINE V load_some(D d, const BFloat* from, size_t count, float fill) {
  HWY_ALIGN float buffer[kMaxLanes];
  hn::Store(hn::Set(d, fill), d, buffer);
  for (size_t i = 0; i < count; ++i) buffer[i] = bfloat_to_float(from[i].bits);
  return hn::Load(d, buffer);
}
template <typename T>
HWY_INLINE V load_some(D d, const T* from, size_t count, float fill) {
  HWY_ALIGN float buffer[kMaxLanes];
  hn::Store(hn::Set(d, fill), d, buffer);
  for (size_t i = 0; i < count; ++i) buffer[i] = static_cast<float>(from[i]);
  return hn::Load(d, buffer);
}

template <typename T>
HWY_INLINE void store_some(V v, D d, T* to, size_t count) {
  if constexpr (kMasksMemory && std::is_same_v<T, float>) return hn::BlendedStore(v, hn::FirstN(d, count), d, to);
  HWY_ALIGN T buffer[kMaxLanes];
  store(v, d, buffer);
  std::memcpy(static_cast<void*>(to), buffer, count * sizeof(T));
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();

#endif
