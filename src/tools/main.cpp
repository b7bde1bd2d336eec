// SPDX-License-Identifier: Apache-2.0
//
// One program, several names: a link called trtexec is trtexec, those called polygraphy and trex have the commands and flags of those programs; under
// any other name the first word says which tool.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/version.h"
#include "options/documents.h"
#include "tools/commands/commands.h"
#include "tools/documents/documents.h"
#include "tools/trex/trex.h"
#include "tools/trtexec/trtexec.h"

namespace {

std::string usage() {
  std::string text = "usage: hone <tool> [arguments]\n";
  for (const hone::Command& command : hone::command_table())
    if (command.second.empty()) text += fmt::format("  {:<12}  {}\n", command.first, command.help);
  return text +
         "  trtexec    all of it with trtexec's flags, log and files (see hone trtexec --help)\n"
         "  help       this text; help flags: the page of all flags; help man [COMMAND]; help completion "
         "[bash|zsh|fish];\n"
         "             help documents FOLDER: manual pages and completion, laid out as in ~/.local/share\n"
         "  --version  the version\n";
}

/// Idle threads of GNU's OpenMP spin for some 10 ms, which only the environment can change and only before the program starts.
/// Where others use the processors, too, they spin away the time that they are then refused when there is work: an inference
/// of MobileNet-v3 took 60 ms so beside one busy process, 12 ms with short spins, and 3.7 ms either way without it.
void restart_with_short_spins(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  std::error_code none;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", none).filename().string();
  if (self.empty() || self.starts_with("ld-")) return;  // no /proc, or started through the loader by hand
  if (setenv("GOMP_SPINCOUNT", "1000", 1) == 0) execv("/proc/self/exe", argv);
}

constexpr std::string_view kPolygraphy[] = {"run",      "convert", "inspect", "check",  "surgeon",
                                            "template", "debug",   "data",    "plugin", "multi-device"};

std::string polygraphy_usage() {
  std::string text = "usage: polygraphy <command> [arguments]\n";
  for (const hone::Command& command : hone::command_table())
    if (command.second.empty() && std::ranges::find(kPolygraphy, command.first) != std::end(kPolygraphy))
      text += fmt::format("  {:<9}  {}\n", command.first,
                          command.first == "run" ? "compare what several runners make of a model" : command.help);
  return text + "  --version  the version\nThis is hone under another name: hone --help tells what else it does.\n";
}

/// Commands of Polygraphy and no others; `run` is always a comparison.
int run_polygraphy(const std::string& tool, const std::vector<std::string>& arguments) {
  if (tool.empty() || tool == "--help" || tool == "-h" || tool == "help") {
    fmt::print("{}", polygraphy_usage());
    return tool.empty() ? 2 : 0;
  }
  if (tool == "--version" || tool == "-v") {
    fmt::print("Polygraphy | Version: hone {}\n", hone::kVersion);
    return 0;
  }
  if (tool == "run") return hone::run_comparison(arguments);
  if (const hone::Command* found = hone::find_command(tool, arguments);
      found != nullptr && std::ranges::find(kPolygraphy, tool) != std::end(kPolygraphy))
    return found->run(hone::Words(arguments).subspan(found->second.empty() ? 0 : 1));
  const std::vector<std::string_view> names(std::begin(kPolygraphy), std::end(kPolygraphy));
  fmt::print(stderr, "polygraphy: there is no command called {}; did you mean {}?\n", tool, hone::nearest(tool, names));
  return 2;
}

/// Tools that read and write files and run no network: a second start would double their time.
bool only_reads(const std::vector<std::string>& words) {
  constexpr std::string_view kReaders[] = {"inspect", "surgeon", "data", "plugin",      "template",
                                           "help",    "--help",  "-h",   "--version",   "version",
                                           "cache",   "-v",      "draw", "multi-device"};
  if (words.size() < 2) return true;
  if (words[1] == "check") return words.size() > 2 && (words[2] == "lint" || words[2] == "accuracy");
  return std::ranges::find(kReaders, words[1]) != std::end(kReaders);
}

int run_tool(const std::string& tool, const std::vector<std::string>& arguments, const std::string& command) {
  if (tool == "trtexec") return hone::run_trtexec(arguments, command);
  if (const hone::Command* found = hone::find_command(tool, arguments))
    return found->run(hone::Words(arguments).subspan(found->second.empty() ? 0 : 1));
  if (tool == "--version" || tool == "version") {
    fmt::print("hone {}\n", hone::kVersion);
    return 0;
  }
  if (tool == "help" && !arguments.empty() && arguments[0] == "flags") {
    fmt::print("{}", hone::flags_page());
    return 0;
  }
  constexpr std::string_view kDocuments[] = {"man", "completion", "documents"};
  if (tool == "help" && !arguments.empty() && std::ranges::find(kDocuments, arguments[0]) != std::end(kDocuments))
    return hone::print_document(arguments);
  const bool asked = tool.empty() || tool == "help" || tool == "--help" || tool == "-h";
  if (!asked) {
    std::vector<std::string_view> names{"trtexec", "help", "--version"};
    for (const hone::Command& entry : hone::command_table()) names.push_back(entry.first);
    fmt::print(stderr, "hone: there is no tool called {}; did you mean {}?\n", tool, hone::nearest(tool, names));
  }
  fmt::print(asked ? stdout : stderr, "{}", usage());
  return asked ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  const std::string command = hone::join(words, " ");
  const std::string name = std::filesystem::path(words.empty() ? "hone" : words[0]).stem().string();
  if (name == "trtexec" || !only_reads(words)) restart_with_short_spins(argv);
  if (!words.empty()) words.erase(words.begin());
  std::string tool = name;
  if (name != "trtexec") {
    tool = words.empty() ? "" : words[0];
    if (!words.empty()) words.erase(words.begin());
  }
  if (name == "trex") return hone::run_trex(tool, words);
  return name == "polygraphy" ? run_polygraphy(tool, words) : run_tool(tool, words, command);
}
