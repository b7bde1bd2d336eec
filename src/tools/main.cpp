// SPDX-License-Identifier: Apache-2.0
//
// One program, several names: a link called trtexec is trtexec; under any other name the first word says which tool.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/version.h"
#include "options/documents.h"
#include "tools/commands/commands.h"
#include "tools/trtexec/trtexec.h"

namespace {

constexpr std::string_view kUsage =
    "usage: hone <tool> [arguments]\n"
    "  build      make a plan of an ONNX model\n"
    "  run        run a plan or a model once and show its outputs\n"
    "  bench      measure a plan or a model\n"
    "  check      run an engine in all the ways that programs do: the results must stay the same\n"
    "  inspect    show what a plan holds; write a C program that runs it\n"
    "  cache      list, merge and prune timing caches\n"
    "  doctor     what this program is and finds on this machine\n"
    "  trtexec    all of it with trtexec's flags, log and files (see hone trtexec --help)\n"
    "  help       this text; help flags: the page of all flags; help completion: completion for bash\n"
    "  --version  the version\n";

struct Tool {
  std::string_view name;
  int (*run)(hone::Words);
};
constexpr Tool kTools[] = {{"build", hone::run_build},  {"run", hone::run_run},         {"bench", hone::run_bench},
                           {"check", hone::run_check},  {"inspect", hone::run_inspect}, {"cache", hone::run_cache},
                           {"doctor", hone::run_doctor}};

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

int run_tool(const std::string& tool, const std::vector<std::string>& arguments, const std::string& command) {
  if (tool == "trtexec") return hone::run_trtexec(arguments, command);
  for (const Tool& entry : kTools)
    if (entry.name == tool) return entry.run(arguments);
  if (tool == "--version" || tool == "version") {
    fmt::print("hone {}\n", hone::kVersion);
    return 0;
  }
  if (tool == "help" && !arguments.empty() && (arguments[0] == "flags" || arguments[0] == "completion")) {
    fmt::print("{}", arguments[0] == "flags" ? hone::flags_page() : hone::completion_script());
    return 0;
  }
  const bool asked = tool.empty() || tool == "help" || tool == "--help" || tool == "-h";
  if (!asked) {
    std::vector<std::string_view> names{"trtexec", "help", "--version"};
    for (const Tool& entry : kTools) names.push_back(entry.name);
    fmt::print(stderr, "hone: there is no tool called {}; did you mean {}?\n", tool, hone::nearest(tool, names));
  }
  fmt::print(asked ? stdout : stderr, "{}", kUsage);
  return asked ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  restart_with_short_spins(argv);
  std::vector<std::string> words(argv, argv + argc);
  const std::string command = hone::join(words, " ");
  const std::string name = std::filesystem::path(words.empty() ? "hone" : words[0]).stem().string();
  if (!words.empty()) words.erase(words.begin());
  std::string tool = name;
  if (name != "trtexec") {
    tool = words.empty() ? "" : words[0];
    if (!words.empty()) words.erase(words.begin());
  }
  return run_tool(tool, words, command);
}
