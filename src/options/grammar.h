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
  size_t position = 0;  // in argv, from 1
  bool taken = false;

  /// As typed.
  std::string text() const { return value.empty() ? flag : flag + "=" + value; }
};

/// Two lines to put behind a message: the argument, and a caret under the offset in its value.
std::string caret_under(std::string_view flag, std::string_view value, size_t offset);
/// The same for the shape of a tensor in arguments such as ("--shapes", "x:1x3"): under the size of `axis`, or under the
/// tensor's name without one. Empty when no argument names the tensor.
std::string caret_under_shape(const NamedTexts& arguments, std::string_view tensor,
                              std::optional<size_t> axis = std::nullopt);

/// C++ stoi/stof rules: leading blanks allowed, text behind the number ignored; throws Error when there is no number.
int read_integer(const Argument& argument);
double read_real(const Argument& argument);

/// Splits at commas (not inside single quotes); an empty text is an empty list.
std::vector<std::string> read_list(const Argument& argument);
/// name ":" value entries; an unquoted name ends at the last colon.
NamedTexts read_named(const Argument& argument);
ShapeMap read_shapes(const Argument& argument);
/// "1024MiB" is MiB, which the releases from 10 on misread as bytes.
MemoryPools read_pools(const Argument& argument, Release release);
/// "fp16:chw+hwc8"; in release 11 without a type.
std::vector<IoFormatSpec> read_io_formats(const Argument& argument, Release release);
/// "+CUBLAS,-CUDNN" with the words that are known, any case; `what` names them in errors ("Tactic source").
NamedTexts read_signed(const Argument& argument, const std::string& what, const std::vector<std::string>& words);
std::vector<float> read_percentiles(const Argument& argument);
/// One of `words`, else the error "Unknown <what>: <value>".
std::string read_word(const Argument& argument, const std::string& what, const std::vector<std::string>& words);

}  // namespace hone
