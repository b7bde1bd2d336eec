// SPDX-License-Identifier: Apache-2.0
//
// Entries of a zip archive, stored or deflated, read piece by piece: no entry is ever in memory whole. Nothing read from the archive
// is trusted: every offset and size is checked, and the checksum when the last byte has been read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

struct z_stream_s;

namespace hone {

/// What the archive's directory says of an entry.
struct ZipEntry {
  std::string_view name;
  uint64_t flags = 0, method = 0, checksum = 0, packed = 0, size = 0, offset = 0;
};

/// Archives beyond 4 GiB (zip64) too. Throws Error where the directory is cut or damaged.
std::vector<ZipEntry> zip_entries(std::span<const std::byte> archive);

/// The bytes of one entry. Forwards is cheap; going back begins anew.
class ZipStream {
 public:
  /// The archive stays as long as this lives. Throws Error for entries that are encrypted, packed in another way, outside of the archive,
  /// or larger than what they are packed from can be.
  ZipStream(std::span<const std::byte> archive, const ZipEntry& entry);

  uint64_t size() const { return size_; }
  /// Throws Error where the entry is damaged.
  void read(uint64_t at, std::span<std::byte> to);
  /// Reads the rest, for its checksum.
  void finish();

 private:
  struct Close {
    void operator()(z_stream_s* stream) const;
  };
  void begin();
  void skip_to(uint64_t at);
  void take(std::span<std::byte> to);
  void inflate_to(std::span<std::byte> to);

  std::span<const std::byte> packed_;
  uint64_t size_, wanted_checksum_;
  uint64_t position_ = 0, checksum_ = 0, consumed_ = 0;
  std::unique_ptr<z_stream_s, Close> inflating_;  // null: stored
};

}  // namespace hone
