// SPDX-License-Identifier: Apache-2.0
//
// From argv to Options. The rules of the original hold: an argument is split at its first '=', nothing may be left over,
// a flag that takes one value may stand once. The first value that cannot be understood ends the parsing; what is left over is
// only reported when nothing else is wrong.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "options/tool_options.h"

namespace hone {

struct CommandLine {
  Options options;
  bool help = false;                          ///< asked for; nothing else was looked at
  std::vector<std::string> warnings, errors;  ///< texts without prefix, in the order they arose
};

/// `arguments` without argv[0].
CommandLine parse_command_line(std::span<const std::string> arguments);

/// The text of --help, generated from the table.
std::string help_text();

}  // namespace hone
