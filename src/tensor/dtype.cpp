// SPDX-License-Identifier: Apache-2.0
//
// Element types.
#include "tensor/dtype.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "base/numbers.h"

namespace hone {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  size_t size;
};
constexpr Row kRows[] = {{DType::f32, "f32", 4},
                         {DType::f16, "f16", 2},
                         {DType::bf16, "bf16", 2},
                         {DType::f64, "f64", 8},
                         {DType::i8, "i8", 1},
                         {DType::u8, "u8", 1},
                         {DType::i16, "i16", 2},
                         {DType::u16, "u16", 2},
                         {DType::i32, "i32", 4},
                         {DType::u32, "u32", 4},
                         {DType::i64, "i64", 8},
                         {DType::u64, "u64", 8},
                         {DType::boolean, "bool", 1},
                         {DType::string, "string", 8},
                         {DType::f8e4m3fn, "f8e4m3fn", 1},
                         {DType::f8e4m3fnuz, "f8e4m3fnuz", 1},
                         {DType::f8e5m2, "f8e5m2", 1},
                         {DType::f8e5m2fnuz, "f8e5m2fnuz", 1},
                         {DType::f8e8m0, "f8e8m0", 1},
                         {DType::f4e2m1, "f4e2m1", 1},
                         {DType::i4, "i4", 1},
                         {DType::u4, "u4", 1},
                         {DType::i2, "i2", 1},
                         {DType::u2, "u2", 1},
                         {DType::sequence, "sequence", 8},
                         {DType::optional, "optional", 8},
                         {DType::map, "map", 8}};
static_assert(std::size(kRows) == kDTypes);

/// A small float kind: sign, exponent and mantissa bits, and what its outermost codes mean.
struct SmallFloat {
  int mantissa, bias;
  float largest;
  uint8_t overflow;  // code beyond the range when not saturating
  uint8_t nan;
  bool negative_zero;
};
constexpr SmallFloat kSmallFloats[] = {{3, 7, 448, 0x7f, 0x7f, true},       // f8e4m3fn
                                       {3, 8, 240, 0x80, 0x80, false},      // f8e4m3fnuz
                                       {2, 15, 57344, 0x7c, 0x7f, true},    // f8e5m2
                                       {2, 16, 57344, 0x80, 0x80, false}};  // f8e5m2fnuz
constexpr SmallFloat kFloat4{1, 1, 6, 0x07, 0x08, true};                    // has no NaN: it becomes -0

/// Nearest multiple of the last place at this magnitude; exact in float, since codes have few bits.
float round_to(const SmallFloat& kind, float magnitude) {
  const int exponent = std::max(magnitude == 0 ? 1 - kind.bias : std::ilogb(magnitude), 1 - kind.bias);
  return std::ldexp(std::nearbyint(std::ldexp(magnitude, kind.mantissa - exponent)), exponent - kind.mantissa);
}

uint8_t encode(const SmallFloat& kind, int sign_bit, float value, bool saturate) {
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? 1 << sign_bit : 0);
  if (std::isnan(value)) return static_cast<uint8_t>(kind.negative_zero ? sign | kind.nan : kind.nan);
  float magnitude = std::isinf(value) ? value : round_to(kind, std::abs(value));
  magnitude = std::abs(magnitude);
  if (magnitude > kind.largest) {
    if (!saturate) return static_cast<uint8_t>(kind.negative_zero ? sign | kind.overflow : kind.overflow);
    magnitude = kind.largest;
  }
  if (magnitude == 0) return kind.negative_zero ? sign : 0;
  const int exponent = std::max(std::ilogb(magnitude), 1 - kind.bias);
  const auto scaled =
      static_cast<int>(std::ldexp(magnitude, kind.mantissa - exponent));  // with the hidden bit unless subnormal
  const int code = scaled < (1 << kind.mantissa)
                       ? scaled
                       : ((exponent + kind.bias) << kind.mantissa) + scaled - (1 << kind.mantissa);
  return static_cast<uint8_t>(sign | code);
}

float decode(const SmallFloat& kind, int sign_bit, uint8_t code) {
  const int magnitude = code & ((1 << sign_bit) - 1), exponent = magnitude >> kind.mantissa,
            fraction = magnitude & ((1 << kind.mantissa) - 1);
  const bool negative = (code >> sign_bit) & 1;
  if (!kind.negative_zero && code == kind.nan) return std::numeric_limits<float>::quiet_NaN();
  const float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), 1 - kind.bias - kind.mantissa)
                                    : std::ldexp(static_cast<float>(fraction + (1 << kind.mantissa)),
                                                 exponent - kind.bias - kind.mantissa);
  if (value <= kind.largest || sign_bit == 3) return negative ? -value : value;
  const bool infinite = kind.overflow != kind.nan && magnitude == kind.overflow;
  const float special = infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  return negative ? -special : special;
}

/// Powers of two from 2^-127 on; 0xff is NaN.
uint8_t encode_power(float value, bool saturate) {
  if (std::isnan(value) || value < 0) return 0xff;
  if (std::isinf(value)) return saturate ? 0xfe : 0xff;
  if (value == 0) return 0;
  int exponent = std::ilogb(value);
  if (std::ldexp(value, -exponent) >= 1.5f) ++exponent;
  return static_cast<uint8_t>(std::clamp(exponent + 127, 0, 254));
}

}  // namespace

int bits_of(DType dtype) {
  if (dtype == DType::i2 || dtype == DType::u2) return 2;
  if (dtype == DType::i4 || dtype == DType::u4 || dtype == DType::f4e2m1) return 4;
  return static_cast<int>(8 * size_of(dtype));
}

float small_to_float(DType dtype, uint8_t code) {
  switch (dtype) {
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
      return decode(kSmallFloats[static_cast<size_t>(dtype) - static_cast<size_t>(DType::f8e4m3fn)], 7, code);
    case DType::f8e8m0: return code == 0xff ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, code - 127);
    case DType::f4e2m1: return decode(kFloat4, 3, code);
    case DType::i4: return static_cast<float>(static_cast<int8_t>(static_cast<uint8_t>(code << 4)) >> 4);
    case DType::i2: return static_cast<float>(static_cast<int8_t>(static_cast<uint8_t>(code << 6)) >> 6);
    case DType::u4: return static_cast<float>(code & 15);
    case DType::u2: return static_cast<float>(code & 3);
    default: throw InternalError(fmt::format("{} is not a small type", name_of(dtype)));
  }
}

uint8_t float_to_small(DType dtype, float value, bool saturate) {
  switch (dtype) {
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
      return encode(kSmallFloats[static_cast<size_t>(dtype) - static_cast<size_t>(DType::f8e4m3fn)], 7, value,
                    saturate);
    case DType::f8e8m0: return encode_power(value, saturate);
    case DType::f4e2m1: return encode(kFloat4, 3, value, true);
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::u2: {
      const auto whole = std::isfinite(value) ? saturated<int64_t>(value) : 0;
      const int bits = bits_of(dtype);
      const int64_t wrapped = whole & ((1 << bits) - 1);
      const bool negative = (dtype == DType::i4 || dtype == DType::i2) && (wrapped >> (bits - 1)) != 0;
      return static_cast<uint8_t>(negative ? wrapped - (1 << bits) : wrapped);
    }
    default: throw InternalError(fmt::format("{} is not a small type", name_of(dtype)));
  }
}

size_t size_of(DType dtype) { return kRows[static_cast<size_t>(dtype)].size; }
std::string_view name_of(DType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

std::optional<DType> dtype_of_word(std::string_view word) {
  static constexpr std::pair<std::string_view, DType> kWords[] = {
      {"fp32", DType::f32},     {"fp16", DType::f16}, {"bf16", DType::bf16}, {"int32", DType::i32},
      {"int64", DType::i64},    {"int8", DType::i8},  {"uint8", DType::u8},  {"bool", DType::boolean},
      {"fp8", DType::f8e4m3fn}, {"int4", DType::i4}};
  const auto found = std::ranges::find(kWords, word, &std::pair<std::string_view, DType>::first);
  return found == std::end(kWords) ? std::nullopt : std::optional(found->second);
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
  if (magnitude < 0x38800000u) {                                              // subnormal half
    const float scaled = std::ldexp(std::bit_cast<float>(magnitude), 24);
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace hone
