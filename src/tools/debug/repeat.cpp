// SPDX-License-Identifier: Apache-2.0
//
// `hone debug repeat`: the same command again and again, for what fails now and then.
#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/commands/group.h"
#include "tools/debug/until.h"

namespace hone {
namespace {

const CompanionCommand& command() {
  static const CompanionCommand kCommand = [] {
    CompanionCommand made{"debug repeat",
                          "",
                          "Runs a command again and again and sorts what it leaves into good/ and bad/. Exit 0: all "
                          "iterations passed, or with "
                          "--until good one did; 1: one failed.",
                          {until_flag()},
                          0,
                          0};
    for (CompanionFlag& flag : checker_flags())
      if (flag.name != "--check-run" && flag.name != "--iter-artifact" && flag.name != "--no-remove-intermediate")
        made.flags.push_back(flag);
    return made;
  }();
  return kCommand;
}

ExitStatus repeat(const Arguments& arguments) {
  const Narrator narrator(arguments);
  Until until(arguments);
  narrator.info("RUNNING | Command: hone debug repeat {}", join(arguments.words(), " "));
  Checker checker(arguments, narrator, "");
  bool again = true;
  while (again) {
    checker.expect(until.remaining());
    again = until.goes_on(checker.passes("repeat", [] {}));
  }
  checker.finish();
  write_json_result(arguments, Json{{"iterations", checker.asked()}, {"passed", checker.passed()}}.dump(2));
  return until.status();
}

const CompanionCommand& debug_command() {
  static const CompanionCommand kCommand{
      "debug", "COMMAND", "Finds what makes a check fail: reduce, precision, build, repeat, diff-tactics.",
      {},      0,         1000};
  return kCommand;
}

}  // namespace

const FriendlyCommand& describe_debug() {
  static const FriendlyCommand kFriendly = friendly_of(debug_command());
  return kFriendly;
}
int run_debug(Words words) { return run_group(debug_command(), words); }

const FriendlyCommand& describe_debug_repeat() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}
int run_debug_repeat(Words words) { return run_companion(command(), words, repeat); }

}  // namespace hone
