// SPDX-License-Identifier: Apache-2.0
//
// A folder of a test's own, whatever else runs on the machine. For tests only.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace hone {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hone_test_XXXXXX").string();
    HONE_CHECK(::mkdtemp(name.data()) != nullptr, "no folder like {} can be made", name);
    path_ = name;
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace hone
