// SPDX-License-Identifier: Apache-2.0
#include "explore/tensor_row.h"

#include <algorithm>
#include <cctype>

namespace hone {
namespace {

struct Spelling {
  std::string_view word, name;
  int bits;
};
// The first that occurs counts, so longer words stand before those that they hold.
constexpr Spelling kSpellings[] = {
    {"bfloat16", "BF16", 16}, {"bf16", "BF16", 16},     {"fp16", "FP16", 16},     {"half", "FP16", 16},
    {"float16", "FP16", 16},  {"float64", "FP64", 64},  {"float4", "FP4", 4},     {"fp8", "FP8", 8},
    {"float8", "FP8", 8},     {"fp4", "FP4", 4},        {"fp64", "FP64", 64},     {"double", "FP64", 64},
    {"fp32", "FP32", 32},     {"tf32", "FP32", 32},     {"e8m0", "E8M0", 8},      {"float", "FP32", 32},
    {"uint64", "UINT64", 64}, {"uint32", "UINT32", 32}, {"uint16", "UINT16", 16}, {"uint8", "UINT8", 8},
    {"uint4", "UINT4", 4},    {"uint2", "UINT2", 2},    {"int64", "INT64", 64},   {"int32", "INT32", 32},
    {"int16", "INT16", 16},   {"int8", "INT8", 8},      {"int4", "INT4", 4},      {"int2", "INT2", 2},
    {"bool", "BOOL", 8}};

}  // namespace

ElementWord element_word(std::string_view format) {
  std::string text(format);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Spelling& spelling : kSpellings)
    if (text.find(spelling.word) != std::string::npos) return {std::string(spelling.name), spelling.bits};
  return {std::string(format), 0};
}

int64_t TensorRow::count() const {
  int64_t product = 1;
  for (const int64_t size : dims)
    if (size < 0 || __builtin_mul_overflow(product, size, &product)) return 0;
  return product;
}

bool is_index(const ElementWord& element) {
  static constexpr std::string_view kIndices[] = {"INT64", "INT32", "UINT64", "UINT32", "BOOL"};
  return std::ranges::find(kIndices, element.name) != std::end(kIndices);
}

bool is_integer(const ElementWord& element) {
  return element.name.starts_with("INT") || element.name.starts_with("UINT");
}

}  // namespace hone
