// SPDX-License-Identifier: Apache-2.0
//
// Files: read-only mapping, whole reads, and writing that never leaves half a file under the final name.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hone {

/// A read-only private mapping of a regular file; shared by everything that points into it.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const std::string& path);  ///< throws Error with the reason
  /// Opens `relative` below `directory` for names that come from a file: no absolute path, no "..", no symbolic link in
  /// any component, a regular file without other hard links. Walked component by component, so nothing can be swapped in.
  static std::shared_ptr<const MappedFile> open_below(const std::string& directory, const std::string& relative);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  /// Pages that were read count as the program's memory until they are given back; read again, they come from the file. Of `part` only
  /// whole pages of this mapping are.
  void give_back(std::span<const std::byte> part) const;

 private:
  MappedFile(std::span<const std::byte> bytes, std::string path) : bytes_(bytes), path_(std::move(path)) {}
  static std::shared_ptr<const MappedFile> map(int descriptor, const std::string& path, bool lone);

  std::span<const std::byte> bytes_;
  std::string path_;
};

std::string read_file(const std::string& path);
/// Writes beside `path`, syncs, renames. On failure nothing is left and the old file is intact.
void write_file(const std::string& path, std::span<const std::span<const std::byte>> pieces);
void write_file(const std::string& path, std::string_view text);

/// Holds an advisory lock on `path` + ".lock" while alive (blocking).
class FileLock {
 public:
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace hone
