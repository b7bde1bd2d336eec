// SPDX-License-Identifier: Apache-2.0
#include "tools/common/terminal.h"

#include "tools/commands/commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace hone {

constexpr size_t kLabelWidth = 16;

bool wants_colour(std::FILE* stream) {
  const char *none = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  return (none == nullptr || *none == 0) && terminal != nullptr && std::string_view(terminal) != "dumb" &&
         isatty(fileno(stream)) != 0;
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
