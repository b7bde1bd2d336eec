// SPDX-License-Identifier: Apache-2.0
//
// Composition of error texts.
#include "base/error.h"

#include <fmt/format.h>

namespace hone {

Error::Error(std::string message, std::string hint) : message_(std::move(message)), hint_(std::move(hint)) {
  compose();
}

void Error::add_note(std::string note) {
  notes_.push_back(std::move(note));
  compose();
}

void Error::compose() {
  text_ = message_;
  for (const std::string& note : notes_) text_ += "\n  while " + note;
  if (!hint_.empty()) text_ += "\n  hint: " + hint_;
}

void fail_check(fmt::string_view format, fmt::format_args arguments) { throw Error(fmt::vformat(format, arguments)); }

void fail_assert(const char* place, fmt::string_view format, fmt::format_args arguments) {
  throw InternalError(place + fmt::vformat(format, arguments));
}

}  // namespace hone
