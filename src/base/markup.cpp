// SPDX-License-Identifier: Apache-2.0
#include "base/markup.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace hone {

std::string markup_text(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) switch (c) {
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '&': result += "&amp;"; break;
      case '"': result += "&quot;"; break;
      default:
        if (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') result += fmt::format("\\x{:02X}", c);
        else result += c;
    }
  return result;
}

}  // namespace hone
