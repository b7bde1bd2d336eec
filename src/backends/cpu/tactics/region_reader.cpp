// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/tactics/region_reader.h"

namespace hone::cpu {

std::optional<std::vector<std::string>> size_texts(const Value* value) {
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  if (value->is_constant()) {
    for (const int64_t number : value->constant->integers()) texts.push_back(std::to_string(number));
    return texts;
  }
  if (value->symbolic == nullptr) return std::nullopt;
  for (const Dim& dim : *value->symbolic) texts.push_back(dim.text());
  return texts;
}

AlignedBuffer zeroed(size_t bytes) {
  AlignedBuffer buffer(bytes);
  std::memset(buffer.data(), 0, bytes);
  return buffer;
}

}  // namespace hone::cpu
