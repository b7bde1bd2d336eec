// SPDX-License-Identifier: Apache-2.0
//
// Holds the families' versions: plans and timing caches know a kernel by its family's version, so what the family gives for the
// region samples may only change together with it. A file has, of each family, the version and a hash of all that. For tests only.
#pragma once

#include <gtest/gtest.h>

#include "base/hash.h"
#include "device/rows_testing.h"

namespace hone {

/// "3 fd92a2b0a81a046b"
inline std::string version_row(int version, std::string_view given) {
  return std::to_string(version) + " " + hash_hex(given).substr(0, 16);
}

/// `test` is the program and its filter.
inline void expect_versions(const std::string& path, const NamedRows& now, const std::string& test) {
  if (renewed(path, "Version of each family of kernels, and a hash of what it gives for tests/regions.", now)) return;
  const std::string renew = "; then HONE_TEST_RENEW=1 " + test + " writes " + path + " anew";
  NamedRows then = read_rows(path);
  const auto version = [](const std::string& row) { return row.substr(0, row.find(' ')); };
  for (const auto& [name, row] : now) {
    const std::string& known = then[name];
    EXPECT_FALSE(row != known && version(row) == version(known))
        << "what " << name << " gives has changed, its version has not: raise its kVersion" << renew;
    EXPECT_EQ(version(row), version(known)) << name << " is at another version than the file has" << renew;
  }
  EXPECT_EQ(now.size(), then.size()) << "a family is gone" << renew;
}

}  // namespace hone
