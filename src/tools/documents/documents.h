// SPDX-License-Identifier: Apache-2.0
//
// Completion and manual pages, made of the flag table (options/table.cpp) and of what the commands say of themselves
// (commands/commands.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/commands/commands.h"

namespace hone {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

struct ManualPage {
  std::string name, text;  // "hone-build"; section 1, in the language of man(7)
};
/// hone, trtexec, and one for each command.
std::vector<ManualPage> manual_pages();

/// Writes all of them as they lie in /usr/share: man/man1, bash-completion/completions, ...
void write_documents(const std::filesystem::path& folder);
/// `hone help man [PAGE]`, `hone help completion [SHELL]`, `hone help documents FOLDER`: the exit status.
int print_document(Words words);

/// The words behind `hone`, of those commands that have two the first once.
std::vector<std::string_view> first_words();
/// The second words of commands that begin with this.
std::vector<std::string_view> second_words(std::string_view first);
/// "inspect capability".
std::string words_of(const Command& command);
/// Of a command, with --json and --help behind them.
std::vector<ShortFlag> own_flags(const Command& command);
/// Whether the value of that name is one of the file system.
bool names_file(std::string_view value_name);

}  // namespace hone
