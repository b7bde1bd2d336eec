// SPDX-License-Identifier: Apache-2.0
//
// One program, several names: a link called trtexec is trtexec; under any other name the first word says which tool.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/version.h"
#include "tools/doctor.h"
#include "tools/trtexec.h"

namespace {

constexpr std::string_view kUsage =
    "usage: hone <tool> [arguments]\n"
    "  trtexec    build an engine from an ONNX model, save it, load it, measure it (see hone trtexec --help)\n"
    "  doctor     what this program is and finds on this machine\n"
    "  help       this text\n"
    "  --version  the version\n";

int run_tool(const std::string& tool, const std::vector<std::string>& arguments, const std::string& command) {
  if (tool == "trtexec") return hone::run_trtexec(arguments, command);
  if (tool == "doctor") return hone::run_doctor();
  if (tool == "--version" || tool == "version") {
    fmt::print("hone {}\n", hone::kVersion);
    return 0;
  }
  const bool asked = tool.empty() || tool == "help" || tool == "--help" || tool == "-h";
  if (!asked) {
    constexpr std::string_view kTools[] = {"trtexec", "doctor", "help", "--version"};
    fmt::print(stderr, "hone: there is no tool called {}; did you mean {}?\n", tool, hone::nearest(tool, kTools));
  }
  fmt::print(asked ? stdout : stderr, "{}", kUsage);
  return asked ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
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
