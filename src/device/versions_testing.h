// SPDX-License-Identifier: Apache-2.0
//
// Holds the families' versions: plans and timing caches know a kernel by its family's version, so what the family gives for the
// region samples may only change together with it. A file has, of each family, the version and a hash of all that. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/hash.h"

namespace hone {

struct FamilyVersion {
  int version = 0;
  std::string hash;
};
using FamilyVersions = std::map<std::string, FamilyVersion, std::less<>>;

inline FamilyVersion version_with(int version, std::string_view given) {
  return {version, hash_hex(given).substr(0, 16)};
}

namespace versions_detail {

inline FamilyVersions read(const std::string& path) {
  FamilyVersions rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    FamilyVersion row;
    if (words >> name >> row.version >> row.hash && !name.starts_with("#")) rows[name] = row;
  }
  return rows;
}

inline void write(const std::string& path, const FamilyVersions& rows) {
  std::ofstream file(path);
  file << "# Version of each family of kernels, and a hash of what it gives for tests/regions. The test that reads "
          "this file "
          "says how to renew it.\n";
  for (const auto& [name, row] : rows) file << name << " " << row.version << " " << row.hash << "\n";
}

}  // namespace versions_detail

/// `test` is the program and its filter, which writes the file anew where HONE_TEST_RENEW is set.
inline void expect_versions(const std::string& path, const FamilyVersions& now, const std::string& test) {
  if (std::getenv("HONE_TEST_RENEW") != nullptr) return versions_detail::write(path, now);
  const std::string renew = "; then HONE_TEST_RENEW=1 " + test + " writes " + path + " anew";
  FamilyVersions then = versions_detail::read(path);
  for (const auto& [name, row] : now) {
    const FamilyVersion& known = then[name];
    EXPECT_FALSE(row.hash != known.hash && row.version == known.version)
        << "what " << name << " gives has changed, its version has not: raise its kVersion" << renew;
    EXPECT_EQ(row.version, known.version) << name << " is at another version than the file has" << renew;
  }
  EXPECT_EQ(now.size(), then.size()) << "a family is gone" << renew;
}

}  // namespace hone
