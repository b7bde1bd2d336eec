// SPDX-License-Identifier: Apache-2.0
#include "tools/common/python.h"

#include <cstdlib>
#include <filesystem>

#include "base/error.h"

namespace hone {
namespace {

std::string quoted(const std::string& text) {
  std::string shell = "'";
  for (const char each : text) shell += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return shell + "'";
}

}  // namespace

std::string python_command(const std::string& program, const std::vector<std::string>& arguments) {
  std::string command = "python3 -c " + quoted(program);
  for (const std::string& each : arguments) command += " " + quoted(each);
  return command;
}

ScratchFolder::ScratchFolder() : path_((std::filesystem::temp_directory_path() / "hone-XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr)
    throw Error("no folder can be made in " + std::filesystem::temp_directory_path().string());
}

ScratchFolder::~ScratchFolder() {
  std::error_code none;
  std::filesystem::remove_all(path_, none);
}

}  // namespace hone
