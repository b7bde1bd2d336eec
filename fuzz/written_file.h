// SPDX-License-Identifier: Apache-2.0
//
// An input as a file, for readers that take a path: in memory's file system where there is one, and gone when the target ends.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness.h"

namespace hone::fuzz {

class WrittenFile {
 public:
  /// `name` says how the file ends.
  explicit WrittenFile(const std::string& name) {
    const bool in_memory = std::filesystem::is_directory("/dev/shm");
    folder_ = ((in_memory ? "/dev/shm" : std::filesystem::temp_directory_path()) / "hone-fuzz-XXXXXX").string();
    if (mkdtemp(folder_.data()) == nullptr) throw InternalError("no folder can be made");
    path_ = folder_ + "/" + name;
  }
  ~WrittenFile() {
    std::error_code none;
    std::filesystem::remove_all(folder_, none);
  }
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  const std::string& path() const { return path_; }
  const std::string& of(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return path_;
  }

 private:
  std::string folder_, path_;
};

}  // namespace hone::fuzz
