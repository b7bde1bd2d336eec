// SPDX-License-Identifier: Apache-2.0
//
// A flag as data. One table of these drives parsing, --help, the documents and the "did you mean" of unknown flags.
#pragma once

#include <span>
#include <string_view>

#include "options/grammar.h"
#include "options/tool_options.h"

namespace hone {

/// The order of parsing and of --help.
enum class FlagGroup { model, build, system, inference, tuning, reporting, help };

struct Flag {
  std::string_view name;
  std::string_view alias;       // another spelling, or empty
  std::string_view value_name;  // "<file>"; empty: a switch, whose value is ignored
  FlagGroup group;
  std::string_view help;
  /// Writes the value where it belongs; null when the flag is only recognised.
  void (*set)(Options&, const Argument&);
  /// What happens instead; printed as a warning when the flag is given. Empty when the flag does what its help says.
  std::string_view instead = {};
  bool repeatable = false;
  bool own = false;  // Hone's, not trtexec's: where it is given, its block says so behind the lines that trtexec has
};

std::span<const Flag> flag_table();
/// Names that look like flags of trtexec but are none, each with what was probably meant.
struct LookAlike {
  std::string_view name, hint;
};
std::span<const LookAlike> look_alikes();
/// By name or alias; null when there is none.
const Flag* find_flag(std::string_view name);

}  // namespace hone
