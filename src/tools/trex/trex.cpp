// SPDX-License-Identifier: Apache-2.0
#include "tools/trex/trex.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/version.h"
#include "tools/commands/commands.h"

namespace hone {
namespace {

constexpr std::string_view kUsage =
    "usage: trex <command> [arguments]\n"
    "  process    build, profile and draw an engine, with all files that explorers read\n"
    "  draw       draw an engine as SVG or DOT\n"
    "  summary    a table of an engine's layers or tactics\n"
    "  --version  the version\n"
    "This is hone under another name: hone --help tells what else it does.\n";

/// Flags of `trex summary` in the words of `hone report`; tactics are sorted by their count where nothing is said.
std::vector<std::string> report_words(const std::vector<std::string>& words) {
  std::vector<std::string> result{"--text"};
  bool grouped = false, sorted = false;
  for (const std::string& word : words) {
    const std::string flag = word == "-gt" ? "--group_tactics" : word == "-sk" ? "--sort_key" : word;
    grouped |= flag == "--group_tactics";
    sorted |= flag.starts_with("--sort_key");
    result.push_back(flag);
  }
  if (grouped && !sorted) result.emplace_back("--sort_key=count");
  return result;
}

}  // namespace

int run_trex(const std::string& command, const std::vector<std::string>& words) {
  if (command.empty() || command == "--help" || command == "-h" || command == "help") {
    fmt::print("{}", kUsage);
    return command.empty() ? 2 : 0;
  }
  if (command == "--version" || command == "-v") {
    fmt::print("trex: hone {}\n", kVersion);
    return 0;
  }
  if (command == "process") return run_process(words);
  if (command == "draw") return run_draw(words);
  if (command == "summary") return run_report(report_words(words));
  const std::vector<std::string_view> names{"process", "draw", "summary"};
  fmt::print(stderr, "trex: there is no command called {}; did you mean {}?\n", command, nearest(command, names));
  return 2;
}

}  // namespace hone
