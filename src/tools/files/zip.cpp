// SPDX-License-Identifier: Apache-2.0
#include "tools/files/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/data_limits.h"
#include "base/error.h"

namespace hone {
namespace {

constexpr uint64_t kStored = 0, kDeflated = 8;
constexpr uint64_t kEncrypted = 1;           // a bit of the flags
constexpr uint64_t kElsewhere = 0xffffffff;  // the number is in the entry's zip64 field
constexpr size_t kEndBytes = 22, kLocatorBytes = 20, kDirectoryBytes = 46, kLocalBytes = 30;
constexpr size_t kScratch = size_t{64} << 10;
constexpr int kRawDeflate = -15;  // window bits without zlib's own header

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> piece(std::span<const std::byte> bytes, uint64_t at, uint64_t size) {
  HONE_CHECK(at <= bytes.size() && bytes.size() - at >= size, "the archive is cut short");
  return bytes.subspan(at, size);
}

/// Little-endian.
uint64_t number_at(std::span<const std::byte> bytes, uint64_t at, size_t size) {
  uint64_t value = 0;
  size_t shift = 0;
  for (const std::byte b : piece(bytes, at, size)) value |= static_cast<uint64_t>(b) << shift, shift += 8;
  return value;
}

bool begins(std::span<const std::byte> bytes, uint64_t at, std::string_view mark) {
  return text_of(piece(bytes, at, mark.size())) == mark;
}

struct Directory {
  uint64_t count, offset;
};

Directory directory_of(std::span<const std::byte> archive) {
  const size_t at = text_of(archive).rfind("PK\5\6");
  HONE_CHECK(at != std::string_view::npos, "it is no zip archive, or its end is missing");
  (void)piece(archive, at, kEndBytes);
  if (at >= kLocatorBytes && begins(archive, at - kLocatorBytes, "PK\6\7")) {
    const uint64_t end = number_at(archive, at - kLocatorBytes + 8, 8);
    HONE_CHECK(begins(archive, end, "PK\6\6"), "the directory of the archive is damaged");
    return {number_at(archive, end + 32, 8), number_at(archive, end + 48, 8)};
  }
  return {number_at(archive, at + 10, 2), number_at(archive, at + 16, 4)};
}

/// Numbers of 64 bits stand in the entry's extra fields, those that need them, in this order.
void read_wide(ZipEntry& entry, std::span<const std::byte> extra) {
  constexpr uint64_t kWide = 1;
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const uint64_t kind = number_at(extra, at, 2), length = number_at(extra, at + 2, 2);
    const std::span<const std::byte> field = piece(extra, at + 4, length);
    at += 4 + length;
    if (kind != kWide) continue;
    uint64_t next = 0;
    for (uint64_t* number : {&entry.size, &entry.packed, &entry.offset})
      if (*number == kElsewhere) *number = number_at(field, next, 8), next += 8;
  }
}

}  // namespace

std::vector<ZipEntry> zip_entries(std::span<const std::byte> archive) {
  const Directory directory = directory_of(archive);
  std::vector<ZipEntry> entries;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.count; ++i) {
    HONE_CHECK(begins(archive, at, "PK\1\2"), "the directory of the archive is damaged");
    const uint64_t name = number_at(archive, at + 28, 2), extra = number_at(archive, at + 30, 2),
                   comment = number_at(archive, at + 32, 2);
    ZipEntry entry{.name = text_of(piece(archive, at + kDirectoryBytes, name)),
                   .flags = number_at(archive, at + 8, 2),
                   .method = number_at(archive, at + 10, 2),
                   .checksum = number_at(archive, at + 16, 4),
                   .packed = number_at(archive, at + 20, 4),
                   .size = number_at(archive, at + 24, 4),
                   .offset = number_at(archive, at + 42, 4)};
    read_wide(entry, piece(archive, at + kDirectoryBytes + name, extra));
    entries.push_back(entry);
    at += kDirectoryBytes + name + extra + comment;
  }
  return entries;
}

ZipStream::ZipStream(std::span<const std::byte> archive, const ZipEntry& entry)
    : size_(entry.size), wanted_checksum_(entry.checksum) {
  HONE_CHECK((entry.flags & kEncrypted) == 0, "the entry {} is encrypted", entry.name);
  if (entry.method != kStored && entry.method != kDeflated)
    throw Error(fmt::format("the entry {} is packed by method {}, which is neither stored nor deflate", entry.name,
                            entry.method),
                "write the archive with numpy.savez or numpy.savez_compressed");
  HONE_CHECK(begins(archive, entry.offset, "PK\3\4"), "the archive is damaged");
  const uint64_t names = number_at(archive, entry.offset + 26, 2) + number_at(archive, entry.offset + 28, 2);
  packed_ = piece(archive, entry.offset + kLocalBytes + names, entry.packed);
  HONE_CHECK(entry.method != kStored || entry.packed == entry.size, "the sizes of the entry {} contradict", entry.name);
  HONE_CHECK(size_ / kMaxInflation <= packed_.size(),
             "the entry {} claims {} bytes, more than {} bytes can be inflated to", entry.name, size_, packed_.size());
  if (entry.method == kDeflated) inflating_.reset(new z_stream_s());
  begin();
}

void ZipStream::Close::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;
}

void ZipStream::begin() {
  position_ = consumed_ = 0;
  checksum_ = crc32(0, nullptr, 0);
  if (inflating_ == nullptr) return;
  inflateEnd(inflating_.get());  // of a stream that is not begun, too
  *inflating_ = {};
  HONE_CHECK(inflateInit2(inflating_.get(), kRawDeflate) == Z_OK, "zlib does not begin");
}

void ZipStream::read(uint64_t at, std::span<std::byte> to) {
  HONE_CHECK(at <= size_ && size_ - at >= to.size(), "the array is cut short");
  if (at < position_) begin();
  skip_to(at);
  take(to);
}

void ZipStream::finish() { skip_to(size_); }

void ZipStream::skip_to(uint64_t at) {
  std::vector<std::byte> scratch(std::min<uint64_t>(kScratch, at - position_));
  while (position_ < at) take(std::span(scratch).first(std::min<uint64_t>(scratch.size(), at - position_)));
}

/// The next bytes.
void ZipStream::take(std::span<std::byte> to) {
  if (to.empty()) return;
  if (inflating_ == nullptr) std::ranges::copy(packed_.subspan(position_, to.size()), to.begin());
  else inflate_to(to);
  position_ += to.size();
  checksum_ = crc32_z(checksum_, reinterpret_cast<const Bytef*>(to.data()), to.size());
  HONE_CHECK(position_ < size_ || checksum_ == wanted_checksum_, "the archive is damaged: a checksum does not fit");
}

/// zlib counts in 32 bits.
void ZipStream::inflate_to(std::span<std::byte> to) {
  constexpr uint64_t kMost = std::numeric_limits<uInt>::max();
  z_stream_s& stream = *inflating_;
  for (uint64_t made = 0; made < to.size();) {
    const uint64_t room = std::min(kMost, to.size() - made), given = std::min(kMost, packed_.size() - consumed_);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed_.data() + consumed_));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(to.data() + made);
    stream.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream, Z_NO_FLUSH);
    made += room - stream.avail_out;
    consumed_ += given - stream.avail_in;
    const bool goes_on = status == Z_OK || (status == Z_STREAM_END && made == to.size());
    HONE_CHECK(goes_on, "the archive is damaged: its compressed data {}",
               status == Z_DATA_ERROR ? "make no sense" : "end early");
  }
}

}  // namespace hone
