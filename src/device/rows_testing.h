// SPDX-License-Identifier: Apache-2.0
//
// Files that a test writes and holds its backend to: a row a name, what was found for it behind. HONE_TEST_RENEW=1 writes them
// anew; a review sees what changed. For tests only.
#pragma once

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

namespace hone {

using NamedRows = std::map<std::string, std::string, std::less<>>;

inline NamedRows read_rows(const std::string& path) {
  NamedRows rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t space = line.find(' ');
    if (!line.starts_with("#") && space != std::string::npos) rows[line.substr(0, space)] = line.substr(space + 1);
  }
  return rows;
}

/// Whether the file was to be written anew, and is.
inline bool renewed(const std::string& path, std::string_view title, const NamedRows& rows) {
  if (std::getenv("HONE_TEST_RENEW") == nullptr) return false;
  std::ofstream file(path);
  file << "# " << title << " The test that reads this file says how to renew it.\n";
  for (const auto& [name, row] : rows) file << name << " " << row << "\n";
  return true;
}

}  // namespace hone
