// SPDX-License-Identifier: Apache-2.0
//
// Scripts of users in Python, which are run by the python3 of the PATH: how the command line is made, and a folder for what goes between.
#pragma once

#include <string>
#include <vector>

namespace hone {

/// "python3 -c PROGRAM ARGUMENTS..." for a shell.
std::string python_command(const std::string& program, const std::vector<std::string>& arguments);

/// An empty folder that goes with its owner.
class ScratchFolder {
 public:
  ScratchFolder();  ///< throws Error where none can be made
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace hone
