// SPDX-License-Identifier: Apache-2.0
//
// Element types.
#include "tensor/dtype.h"

#include <cmath>
#include <cstring>

#include "base/error.h"

namespace hone {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  size_t size;
};
constexpr Row kRows[] = {{DType::f32, "f32", 4}, {DType::f16, "f16", 2}, {DType::bf16, "bf16", 2},     {DType::f64, "f64", 8},   {DType::i8, "i8", 1},
                         {DType::u8, "u8", 1},   {DType::i16, "i16", 2}, {DType::u16, "u16", 2},       {DType::i32, "i32", 4},   {DType::u32, "u32", 4},
                         {DType::i64, "i64", 8}, {DType::u64, "u64", 8}, {DType::boolean, "bool", 1}, {DType::string, "string", 8}};

}  // namespace

size_t size_of(DType dtype) { return kRows[static_cast<size_t>(dtype)].size; }
std::string_view name_of(DType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -value : value;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to infinity
  if (magnitude < 0x38800000u) {                                               // subnormal half
    const float scaled = std::ldexp(std::bit_cast<float>(magnitude), 24);
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace hone
