// SPDX-License-Identifier: Apache-2.0
//
// Log lines as trtexec prints them: "[MM/DD/YYYY-HH:MM:SS] [I] text"; a component tag such as "[HONE] " follows
// for lines of the engine itself. Info and verbose go to stdout, warnings and errors to stderr.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <string>
#include <string_view>

namespace hone {

enum class Severity { internal_error, error, warning, info, verbose };

/// Where log lines go. Passed by reference; a Logger may be used from several threads.
class Logger {
 public:
  using Sink = std::function<void(Severity, std::string_view text)>;

  Logger();                    ///< prints with trtexec's prefix
  explicit Logger(Sink sink);  ///< hands every line that passes the threshold to `sink`
  void set_threshold(Severity threshold) { threshold_ = threshold; }
  Severity threshold() const { return threshold_; }
  bool enabled(Severity severity) const { return severity <= threshold_; }
  /// Prefix added before engine lines, e.g. "[HONE] "; empty for the tool's own lines.
  void write(Severity severity, std::string_view text) const;

  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    log(Severity::info, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void verbose(fmt::format_string<Args...> format, Args&&... args) const {
    log(Severity::verbose, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) const {
    log(Severity::warning, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    log(Severity::error, format, std::forward<Args>(args)...);
  }

 private:
  template <typename... Args>
  void log(Severity severity, fmt::format_string<Args...> format, Args&&... args) const {
    if (enabled(severity)) write(severity, fmt::format(format, std::forward<Args>(args)...));
  }

  Sink sink_;
  Severity threshold_ = Severity::info;
};

/// Drops everything; for tests and callers without interest.
const Logger& silent_logger();

}  // namespace hone
