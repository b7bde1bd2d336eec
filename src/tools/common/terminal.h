// SPDX-License-Identifier: Apache-2.0
//
// How the plain-word tools print: colour on a terminal, bare text in a pipe, aligned pairs of label and value.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace hone {

/// Whether the stream is a terminal that draws colours; NO_COLOR in the environment says it is not.
bool wants_colour(std::FILE* stream);

/// Whether the stream is a terminal that can be drawn on.
bool wants_screen(std::FILE* stream);
/// A text of anybody's as a terminal may be given it: without control characters, marks of direction and letters that are two wide, each
/// of which is a question mark.
std::string terminal_text(std::string_view text);

/// Prints to stdout.
class Page {
 public:
  Page() : colour_(wants_colour(stdout)) {}
  /// In bold where there is colour.
  void title(std::string_view text) const;
  void pair(std::string_view label, std::string_view value) const;
  void line(std::string_view text) const;
  /// Red where there is colour.
  void warning(std::string_view text) const;

 private:
  bool colour_;
};

}  // namespace hone
