// SPDX-License-Identifier: Apache-2.0
//
// The small grammars of flag values: names (quotable), shapes, numbers, pools, formats, signed and named lists. Errors
// name the flag and point at the offending character.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "options/tool_options.h"

namespace hone {

/// One argv element, split at its first '='.
struct Argument {
  std::string flag, value;
  size_t position = 0;                         // in argv, from 1
  bool taken = false;

  /// As typed.
  std::string text() const { return value.empty() ? flag : flag + "=" + value; }
};

/// C++ stoi/stof rules: leading blanks allowed, text behind the number ignored; throws Error when there is no number.
int read_integer(const Argument& argument);
double read_real(const Argument& argument);

/// Splits at commas (not inside single quotes); an empty text is an empty list.
std::vector<std::string> read_list(const Argument& argument);
/// name ":" value entries; an unquoted name ends at the last colon.
NamedTexts read_named(const Argument& argument);
ShapeMap read_shapes(const Argument& argument);
MemoryPools read_pools(const Argument& argument);
std::vector<IoFormatSpec> read_io_formats(const Argument& argument);
/// "+CUBLAS,-CUDNN" with the words that are known, any case; `what` names them in errors ("Tactic source").
NamedTexts read_signed(const Argument& argument, const std::string& what, const std::vector<std::string>& words);
std::vector<float> read_percentiles(const Argument& argument);
/// One of `words`, else the error "Unknown <what>: <value>".
std::string read_word(const Argument& argument, const std::string& what, const std::vector<std::string>& words);

}  // namespace hone
