// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/group.h"

#include "base/text.h"

namespace hone {

int run_group(const CompanionCommand& command, Words words) {
  return run_companion(command, words, [](const Arguments& arguments) -> ExitStatus {
    std::vector<std::string_view> names;
    for (const Command& each : command_table())
      if (each.first == arguments.command().name && !each.second.empty()) names.push_back(each.second);
    if (arguments.files().empty())
      throw UsageError(fmt::format("which {} command?", arguments.command().name),
                       fmt::format("one of {}", join(names, ", ")));
    throw UsageError(fmt::format("there is no {} command called {}", arguments.command().name, arguments.file()),
                     fmt::format("did you mean {}?", nearest(arguments.file(), names)));
  });
}

}  // namespace hone
