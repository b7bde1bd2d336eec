// SPDX-License-Identifier: Apache-2.0
//
// Element types: names, sizes, and conversion of the small kinds. Types of less than a byte take a byte per element here;
// packing belongs to files. Sequences, optionals and maps are values too: their elements are tensors, so they exist on the host
// only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

enum class DType : uint8_t {
  f32,
  f16,
  bf16,
  f64,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  boolean,
  string,
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f8e8m0,
  f4e2m1,
  i4,
  u4,
  i2,
  u2,
  sequence,
  optional,
  map,
};
inline constexpr size_t kDTypes = 27;

/// Bytes of one element in host memory (strings and tensors as elements count as one pointer-sized slot).
size_t size_of(DType dtype);
/// "f32", "i64", "bool", … as the IR text prints them.
std::string_view name_of(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);
/// By the words of command lines: fp32, fp16, bf16, int32, int64, int8, uint8, bool, fp8 (E4M3), int4.
std::optional<DType> dtype_of_word(std::string_view word);

/// The kinds of at most eight bits that C++ has no type for.
constexpr bool is_small(DType d) { return d >= DType::f8e4m3fn && d <= DType::u2; }
constexpr bool is_float(DType d) { return d <= DType::f64 || (d >= DType::f8e4m3fn && d <= DType::f4e2m1); }
constexpr bool is_integer(DType d) { return (d >= DType::i8 && d <= DType::u64) || (d >= DType::i4 && d <= DType::u2); }
/// What holds tensors.
constexpr bool is_container(DType d) { return d >= DType::sequence && d <= DType::map; }
/// Elements are objects of the host, not bytes.
constexpr bool is_object(DType d) { return d == DType::string || is_container(d); }
/// Bits of an element as ONNX files pack it.
int bits_of(DType dtype);

/// The small kinds: value of a code, and the nearest code of a value (ties to even; integers truncate and wrap).
/// Beyond the range: the largest value where `saturate`, else infinity or NaN where the kind has one.
float small_to_float(DType dtype, uint8_t code);
uint8_t float_to_small(DType dtype, float value, bool saturate = true);

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
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<Half>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<BFloat>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<uint16_t>() {
  return DType::u16;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<uint64_t>() {
  return DType::u64;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}

}  // namespace hone
