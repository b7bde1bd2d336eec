// SPDX-License-Identifier: Apache-2.0
//
// Composition of error texts.
#include "base/error.h"
#include "base/error_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace hone {

constexpr std::string_view kNote = "\n  while ", kHint = "\n  hint: ";

Error::Error(std::string message, std::string hint) : message_(std::move(message)), hint_(std::move(hint)) {
  compose();
}

void Error::add_note(std::string note) {
  notes_.push_back(std::move(note));
  compose();
}

void Error::compose() {
  text_ = message_;
  for (const std::string& note : notes_) text_ += std::string(kNote) + note;
  if (!hint_.empty()) text_ += std::string(kHint) + hint_;
}

Error parse_error(std::string_view text) {
  std::string_view hint;
  if (const size_t at = text.rfind(kHint); at != std::string_view::npos) {
    hint = text.substr(at + kHint.size());
    text = text.substr(0, at);
  }
  const size_t notes = std::min(text.find(kNote), text.size());
  Error error(std::string(text.substr(0, notes)), std::string(hint));
  text.remove_prefix(notes);
  while (!text.empty()) {
    text.remove_prefix(kNote.size());
    const size_t end = std::min(text.find(kNote), text.size());
    error.add_note(std::string(text.substr(0, end)));
    text.remove_prefix(end);
  }
  return error;
}

void fail_check(fmt::string_view format, fmt::format_args arguments) { throw Error(fmt::vformat(format, arguments)); }

void fail_assert(const char* place, fmt::string_view format, fmt::format_args arguments) {
  throw InternalError(place + fmt::vformat(format, arguments));
}

}  // namespace hone
