// SPDX-License-Identifier: Apache-2.0
//
// commands.def as data.
#include "tools/commands/commands.h"

namespace hone {
namespace {

/// A word as it is typed: of an identifier, with hyphens.
template <size_t N>
struct Typed {
  constexpr Typed(const char (&from)[N]) {
    for (size_t i = 0; i < N; ++i) text[i] = from[i] == '_' ? '-' : from[i];
  }
  char text[N];
};
template <Typed kWord>
constexpr Typed kTyped = kWord;

constexpr Command kCommands[] = {
#define COMMAND(word, help, file) {kTyped<#word>.text, {}, help, run_##word, describe_##word},
#define SUBCOMMAND(first, second, help, file) \
  {kTyped<#first>.text, #second, help, run_##first##_##second, describe_##first##_##second},
#define HYPHENATED(first, second, spelled, help, file) \
  {kTyped<#first>.text, spelled, help, run_##first##_##second, describe_##first##_##second},
#include "tools/commands/commands.def"
};

}  // namespace

std::span<const Command> command_table() { return kCommands; }

const Command* find_command(const std::string& first, std::span<const std::string> rest) {
  const Command* found = nullptr;
  for (const Command& command : kCommands)
    if (command.first == first && (command.second.empty() || (!rest.empty() && command.second == rest[0])))
      if (found == nullptr || found->second.empty()) found = &command;
  return found;
}

}  // namespace hone
