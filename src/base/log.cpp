// SPDX-License-Identifier: Apache-2.0
//
// The default sink: trtexec's line prefix on stdout or stderr, one write per line so that threads do not mix.
#include "base/log.h"

#include <cstdio>
#include <ctime>

namespace hone {
namespace {

void print_line(Severity severity, std::string_view text) {
  static constexpr std::string_view kTags[] = {"[F] ", "[E] ", "[W] ", "[I] ", "[V] "};
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "[%m/%d/%Y-%H:%M:%S] ", &local);
  const std::string line = fmt::format("{}{}{}\n", stamp, kTags[static_cast<int>(severity)], text);
  std::FILE* stream = severity <= Severity::warning ? stderr : stdout;
  if (stream == stderr) std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stream);
  std::fflush(stream);
}

}  // namespace

Logger::Logger() : sink_(print_line) {}
Logger::Logger(Sink sink) : sink_(std::move(sink)) {}

void Logger::write(Severity severity, std::string_view text) const {
  if (enabled(severity)) sink_(severity, text);
}

const Logger& silent_logger() {
  static const Logger logger([](Severity, std::string_view) {});
  return logger;
}

}  // namespace hone
