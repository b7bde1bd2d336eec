// SPDX-License-Identifier: Apache-2.0
//
// The commands of commands.def, one file each: what follows their name on the command line goes in, the exit status comes out.
// Each also describes itself: --help, manual pages and completion are made of that.
#pragma once

#include <span>
#include <string>

#include "base/log.h"
#include "tools/common/friendly.h"

namespace hone {

using Words = std::span<const std::string>;

#define COMMAND(word, help, file) \
  int run_##word(Words words);    \
  const FriendlyCommand& describe_##word();
#define SUBCOMMAND(first, second, help, file) \
  int run_##first##_##second(Words words);    \
  const FriendlyCommand& describe_##first##_##second();
#define HYPHENATED(first, second, spelled, help, file) SUBCOMMAND(first, second, help, file)
#include "tools/commands/commands.def"
#undef COMMAND
#undef SUBCOMMAND
#undef HYPHENATED

struct Command {
  std::string_view first, second;  // words; the second empty where there is none
  std::string_view help;
  int (*run)(Words);
  const FriendlyCommand& (*describe)();
};
std::span<const Command> command_table();
/// The command that the words begin with, the one of two words first; null: none.
const Command* find_command(const std::string& first, std::span<const std::string> rest);

/// `hone run` as a comparison, whatever its flags.
int run_comparison(Words words);

/// Warnings and errors on stderr, nothing else.
Logger quiet_logger();

}  // namespace hone
