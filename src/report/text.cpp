// SPDX-License-Identifier: Apache-2.0
#include "report/text.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace hone {

std::string_view type_word(DType dtype) {
  switch (dtype) {
    case DType::f32: return "Float";
    case DType::f16: return "Half";
    case DType::bf16: return "BFloat16";
    case DType::f64: return "Double";
    case DType::i8: return "Int8";
    case DType::u8: return "UInt8";
    case DType::i16: return "Int16";
    case DType::u16: return "UInt16";
    case DType::i32: return "Int32";
    case DType::u32: return "UInt32";
    case DType::i64: return "Int64";
    case DType::u64: return "UInt64";
    case DType::boolean: return "Bool";
    case DType::string: return "String";
    case DType::f8e4m3fn: return "FP8";
    case DType::f8e4m3fnuz: return "FP8E4M3FNUZ";
    case DType::f8e5m2: return "FP8E5M2";
    case DType::f8e5m2fnuz: return "FP8E5M2FNUZ";
    case DType::f8e8m0: return "E8M0";
    case DType::f4e2m1: return "FP4";
    case DType::i4: return "Int4";
    case DType::u4: return "UInt4";
    case DType::i2: return "Int2";
    case DType::u2: return "UInt2";
    case DType::sequence: return "Sequence";
    case DType::optional: return "Optional";
    case DType::map: return "Map";
  }
  return "Unknown";
}

std::string_view short_type_word(DType dtype) {
  switch (dtype) {
    case DType::f32: return "fp32";
    case DType::f16: return "fp16";
    case DType::bf16: return "bf16";
    case DType::f64: return "fp64";
    case DType::i8: return "int8";
    case DType::u8: return "uint8";
    case DType::i16: return "int16";
    case DType::u16: return "uint16";
    case DType::i32: return "int32";
    case DType::u32: return "uint32";
    case DType::i64: return "int64";
    case DType::u64: return "uint64";
    case DType::boolean: return "bool";
    case DType::string: return "string";
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0: return "fp8";
    case DType::f4e2m1: return "fp4";
    case DType::i4:
    case DType::u4: return "int4";
    case DType::i2:
    case DType::u2: return "int2";
    case DType::sequence:
    case DType::optional:
    case DType::map: break;
  }
  return "unknown";
}

std::string general(double value) { return fmt::format("{:g}", value); }

std::string json_text(std::string_view text) {
  using Json = nlohmann::json;
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_number(float value) { return std::isfinite(value) ? exact(value) : "null"; }
std::string json_number(double value) { return std::isfinite(value) ? exact(value) : "null"; }

}  // namespace hone
