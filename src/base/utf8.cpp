// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace hone {

/// Bytes of the character that begins here; 0 when none does. Forms that are too long and surrogates are none.
static size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool allowed = (first != 0xe0 || second >= 0xa0) && (first != 0xed || second < 0xa0);
    return allowed && follows(1) && follows(2) ? 3 : 0;
  }
  if (first < 0xf0 || first > 0xf4) return 0;
  const bool allowed = (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second < 0x90);
  return allowed && follows(1) && follows(2) && follows(3) ? 4 : 0;
}

std::string valid_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    if (bytes == 0) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else result += text.substr(0, bytes);
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return result;
}

}  // namespace hone
