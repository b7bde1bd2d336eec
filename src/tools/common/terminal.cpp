// SPDX-License-Identifier: Apache-2.0
#include "tools/common/terminal.h"

#include "base/utf8.h"
#include "tools/commands/commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace hone {

constexpr size_t kLabelWidth = 16;

bool wants_screen(std::FILE* stream) {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) != "dumb" && isatty(fileno(stream)) != 0;
}

bool wants_colour(std::FILE* stream) {
  const char* none = std::getenv("NO_COLOR");
  return (none == nullptr || *none == 0) && wants_screen(stream);
}

std::string terminal_text(std::string_view text) {
  std::string result;
  const std::string valid = valid_utf8(text);
  for (size_t i = 0; i < valid.size();) {
    const auto first = static_cast<unsigned char>(valid[i]);
    const size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    // Two bytes are what begins at U+0080; controls of that range begin with C2 80 to C2 9F. Three and four bytes are beyond U+07FF.
    const bool control =
        first < ' ' || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(valid[i + 1]) < 0xa0);
    if (control || bytes > 2) result += '?';
    else result += valid.substr(i, bytes);
    i += bytes;
  }
  return result;
}

Logger quiet_logger() {
  Logger log([](Severity severity, std::string_view text) {
    fmt::print(stderr, "{}: {}\n", severity == Severity::warning ? "warning" : "error", text);
  });
  log.set_threshold(Severity::warning);
  return log;
}

void Page::title(std::string_view text) const {
  line(colour_ ? fmt::format("\033[1m{}\033[0m", text) : std::string(text));
}
void Page::pair(std::string_view label, std::string_view value) const {
  line(fmt::format("  {:<{}}{}", label, kLabelWidth, value));
}
void Page::warning(std::string_view text) const {
  line(colour_ ? fmt::format("\033[31m{}\033[0m", text) : std::string(text));
}
void Page::line(std::string_view text) const { fmt::print("{}\n", text); }

}  // namespace hone
