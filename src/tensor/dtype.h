// SPDX-License-Identifier: Apache-2.0
//
// Element types: names, sizes, and conversion of the small float kinds.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

enum class DType : uint8_t { f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64, u64, boolean, string };

/// Bytes of one element in host memory (a string element counts as one pointer-sized slot of a Tensor).
size_t size_of(DType dtype);
/// "f32", "i64", "bool", … as the IR text prints them.
std::string_view name_of(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

constexpr bool is_float(DType d) { return d <= DType::f64; }
constexpr bool is_integer(DType d) { return d >= DType::i8 && d <= DType::u64; }

/// IEEE half and bfloat16 as storage types; arithmetic is done in float. Rounding is to nearest even.
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
inline float bfloat_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
inline uint16_t float_to_bfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

struct Half {
  uint16_t bits;
  Half() = default;
  explicit Half(float value) : bits(float_to_half(value)) {}
  explicit operator float() const { return half_to_float(bits); }
};
struct BFloat {
  uint16_t bits;
  BFloat() = default;
  explicit BFloat(float value) : bits(float_to_bfloat(value)) {}
  explicit operator float() const { return bfloat_to_float(bits); }
};

template <typename T>
constexpr DType dtype_of();
template <> constexpr DType dtype_of<float>() { return DType::f32; }
template <> constexpr DType dtype_of<Half>() { return DType::f16; }
template <> constexpr DType dtype_of<BFloat>() { return DType::bf16; }
template <> constexpr DType dtype_of<double>() { return DType::f64; }
template <> constexpr DType dtype_of<int8_t>() { return DType::i8; }
template <> constexpr DType dtype_of<uint8_t>() { return DType::u8; }
template <> constexpr DType dtype_of<int16_t>() { return DType::i16; }
template <> constexpr DType dtype_of<uint16_t>() { return DType::u16; }
template <> constexpr DType dtype_of<int32_t>() { return DType::i32; }
template <> constexpr DType dtype_of<uint32_t>() { return DType::u32; }
template <> constexpr DType dtype_of<int64_t>() { return DType::i64; }
template <> constexpr DType dtype_of<uint64_t>() { return DType::u64; }
template <> constexpr DType dtype_of<bool>() { return DType::boolean; }

}  // namespace hone
