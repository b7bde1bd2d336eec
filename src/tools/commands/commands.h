// SPDX-License-Identifier: Apache-2.0
//
// The commands of commands.def, one file each: what follows their name on the command line goes in, the exit status comes out.
#pragma once

#include <span>
#include <string>

#include "base/log.h"

namespace hone {

using Words = std::span<const std::string>;

#define COMMAND(word, help, file) int run_##word(Words words);
#define SUBCOMMAND(first, second, help, file) int run_##first##_##second(Words words);
#include "tools/commands/commands.def"
#undef COMMAND
#undef SUBCOMMAND

/// Warnings and errors on stderr, nothing else.
Logger quiet_logger();

}  // namespace hone
