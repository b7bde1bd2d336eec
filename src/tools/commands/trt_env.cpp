// SPDX-License-Identifier: Apache-2.0
//
// `hone trt-env`: starts a program written for TensorRT's Python module so that it finds Hone's. Programs open libcudart.so by its path
// before they import the module, so on a machine without a GPU the stand-in's folder has to precede a real one's on LD_LIBRARY_PATH,
// which only the environment of a new process can say.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "tools/commands/commands.h"
#include "tools/common/terminal.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{"trt-env",
                                        "-- COMMAND [ARGUMENTS]",
                                        "Runs a program that imports tensorrt with Hone's module, and on a machine "
                                        "without a GPU with its stand-in for CUDA's "
                                        "run-time library: `hone trt-env -- polygraphy run model.onnx --trt`.",
                                        {{"--stand-ins", "", "", "also the stand-ins for cuda-python and PyCUDA"},
                                         {"--print", "", "", "print the variables for a shell, run nothing"}},
                                        false};
  return kCommand;
}

struct Places {
  fs::path libraries, modules, package, stand_ins;  // empty: nothing to add
};

/// Beside this program: in a build's folder, or in Python's site-packages where both wheels are installed.
Places places() {
  std::error_code none;
  const fs::path bin = fs::read_symlink("/proc/self/exe", none).parent_path(), above = bin.parent_path();
  if (fs::exists(above / "tensorrt/cudart/libcudart.so", none))
    return {above / "tensorrt/cudart", above / "tensorrt", above / "python", above / "tensorrt/stand_ins"};
  const fs::path site = above.parent_path();
  if (fs::exists(site / "tensorrt/_cudart/libcudart.so", none)) return {site / "tensorrt/_cudart", {}, {}, {}};
  throw Error("the Python module tensorrt is not beside this program",
              "install hone-tensorrt into the Python environment that hone is installed in, or build all of Hone "
              "(./dev build)");
}

std::string with(const char* variable, const std::vector<fs::path>& folders) {
  std::string value;
  for (const fs::path& folder : folders)
    if (!folder.empty()) value += (value.empty() ? "" : ":") + folder.string();
  const char* old = std::getenv(variable);
  if (old == nullptr || *old == 0) return value;
  return value.empty() ? old : value + ":" + old;
}

int run(Words words) {
  bool stand_ins = false, print = false;
  size_t at = 0;
  for (; at < words.size() && words[at].starts_with("-"); ++at) {
    if (words[at] == "--") {
      ++at;
      break;
    }
    if (words[at] == "--help" || words[at] == "-h") {
      fmt::print("{}", friendly_help(command()));
      return 0;
    }
    if (words[at] != "--stand-ins" && words[at] != "--print")
      throw Error(fmt::format("hone trt-env has no flag {}", words[at]), "flags of the program come behind --");
    (words[at] == "--print" ? print : stand_ins) = true;
  }
  const Places found = places();
  const std::string libraries = with("LD_LIBRARY_PATH", {found.libraries});
  const std::string modules =
      with("PYTHONPATH", {found.modules, found.package, stand_ins ? found.stand_ins : fs::path()});
  if (print) {
    fmt::print("export LD_LIBRARY_PATH='{}'\nexport PYTHONPATH='{}'\n", libraries, modules);
    return 0;
  }
  if (at == words.size()) throw Error("hone trt-env lacks a command", "hone trt-env -- python program.py");
  setenv("LD_LIBRARY_PATH", libraries.c_str(), 1);
  if (!modules.empty()) setenv("PYTHONPATH", modules.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : words.subspan(at)) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw Error(fmt::format("{} cannot be started: {}", words[at], std::strerror(errno)),
              "give a program on the PATH, or its path");
}

}  // namespace

int run_trt_env(Words words) {
  try {
    return run(words);
  } catch (const Error& error) {
    fmt::print(stderr, "hone trt-env: {}\n  hint: {}\n", error.message(), error.hint());
    return 1;
  }
}

const FriendlyCommand& describe_trt_env() { return command(); }

}  // namespace hone
