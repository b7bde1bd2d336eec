// SPDX-License-Identifier: Apache-2.0
//
// Composition of error texts.
#include "base/error.h"

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

}  // namespace hone
