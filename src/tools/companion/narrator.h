// SPDX-License-Identifier: Apache-2.0
//
// What a companion tells while it works: "[I] text", nested work indented by four blanks. No line holds a time or a process's number,
// so that the same command prints the same lines. Where results go to standard output as JSON, lines go to standard error.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "tools/companion/arguments.h"

namespace hone {

class Narrator {
 public:
  explicit Narrator(const Arguments& arguments);
  ~Narrator();
  Narrator(const Narrator&) = delete;
  Narrator& operator=(const Narrator&) = delete;

  enum class Level { critical, error, warning, info, verbose, extra };
  /// Texts of several lines are indented as a whole.
  void write(Level level, std::string_view text) const;
  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    write(Level::info, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void verbose(fmt::format_string<Args...> format, Args&&... args) const {
    write(Level::verbose, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) const {
    write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    write(Level::error, fmt::format(format, std::forward<Args>(args)...));
  }
  bool tells(Level level) const { return level <= level_; }

  /// Lines are indented further while it lives.
  class Indent {
   public:
    explicit Indent(const Narrator& narrator) : narrator_(narrator) { ++narrator_.depth_; }
    ~Indent() { --narrator_.depth_; }
    Indent(const Indent&) = delete;
    Indent& operator=(const Indent&) = delete;

   private:
    const Narrator& narrator_;
  };
  Indent indented() const { return Indent(*this); }

  /// Warnings and errors of engines, as lines of this one; the rest where it is verbose.
  const Logger& engine_log() const { return engine_log_; }

 private:
  Level level_ = Level::info;
  std::FILE* out_ = stdout;
  std::FILE* file_ = nullptr;
  mutable int depth_ = 0;
  Logger engine_log_;
};

/// Where --json wants results: prints or writes them; nothing without the flag.
void write_json_result(const Arguments& arguments, const std::string& text);

}  // namespace hone
