// SPDX-License-Identifier: Apache-2.0
//
// The one error system: `Error` is the user's (model, file, flag, machine), `InternalError` is ours.
// Context is added on the way out by `ErrorNote`; every user error should carry a hint that says what to do next.
#pragma once

#include <fmt/core.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

class Error : public std::exception {
 public:
  explicit Error(std::string message, std::string hint = {});

  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  const std::vector<std::string>& notes() const { return notes_; }
  void add_note(std::string note);

  /// message, then one "while …" line per note (innermost first), then "hint: …".
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  void compose();

  std::string message_, hint_, text_;
  std::vector<std::string> notes_;
};

/// A defect of Hone itself; the text asks for a report.
class InternalError : public Error {
 public:
  explicit InternalError(std::string message)
      : Error("internal error: " + std::move(message),
              "this is a defect in Hone, please report it with the command line") {}
};

/// Adds "while <text>" to every Error that leaves its scope. `text` is only formatted when an error passes.
template <typename Describe>
auto with_note(Describe&& describe, auto&& body) -> decltype(body()) {
  try {
    return body();
  } catch (Error& error) {
    error.add_note(describe());
    throw;
  }
}

/// Where checks fail, out of the way of the code that makes them.
[[noreturn, gnu::cold]] void fail_check(fmt::string_view format, fmt::format_args arguments);
[[noreturn, gnu::cold]] void fail_assert(const char* place, fmt::string_view format, fmt::format_args arguments);

template <typename... Args>
[[noreturn, gnu::cold, gnu::noinline]] void throw_check(fmt::format_string<const Args&...> format,
                                                        const Args&... args) {
  fail_check(format, fmt::make_format_args(args...));
}
template <typename... Args>
[[noreturn, gnu::cold, gnu::noinline]] void throw_assert(const char* place, fmt::format_string<const Args&...> format,
                                                         const Args&... args) {
  fail_assert(place, format, fmt::make_format_args(args...));
}

}  // namespace hone

#define HONE_TEXT_(x) #x
#define HONE_LINE_(x) HONE_TEXT_(x)

/// User-facing check, always on: HONE_CHECK(cond, "axis {} is out of range", axis).
#define HONE_CHECK(condition, ...)      \
  do {                                  \
    if (!(condition)) [[unlikely]]      \
      ::hone::throw_check(__VA_ARGS__); \
  } while (false)

/// Internal invariant, always on.
#define HONE_ASSERT(condition, ...)                                                              \
  do {                                                                                           \
    if (!(condition)) [[unlikely]]                                                               \
      ::hone::throw_assert(__FILE__ ":" HONE_LINE_(__LINE__) ": " #condition ": ", __VA_ARGS__); \
  } while (false)
