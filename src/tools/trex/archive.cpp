// SPDX-License-Identifier: Apache-2.0
#include "tools/trex/archive.h"

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/file.h"

namespace hone {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50;
constexpr uint16_t kVersion = 20, kUtf8 = 1 << 11, kDeflated = 8;
constexpr uint16_t kDate = (1 << 5) | 1;  // 1980-01-01: the same files make the same archive

template <typename Number>
void put(std::string& to, Number value) {
  for (size_t i = 0; i < sizeof value; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

std::string deflated(const std::string& content) {
  struct Close {
    void operator()(z_stream* stream) const { deflateEnd(stream); }
  };
  z_stream stream{};
  HONE_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK,
             "zlib does not start");
  const std::unique_ptr<z_stream, Close> close(&stream);
  std::string packed(deflateBound(&stream, static_cast<uLong>(content.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  HONE_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib does not come to an end");
  packed.resize(stream.total_out);
  return packed;
}

/// What stands in the header of an entry and in the directory alike.
std::string fields_of(const std::string& name, const std::string& content, const std::string& packed) {
  std::string fields;
  put(fields, kVersion), put(fields, kUtf8), put(fields, kDeflated), put(fields, uint16_t{0}), put(fields, kDate);
  put(fields, static_cast<uint32_t>(
                  crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()))));
  put(fields, static_cast<uint32_t>(packed.size())), put(fields, static_cast<uint32_t>(content.size()));
  put(fields, static_cast<uint16_t>(name.size())), put(fields, uint16_t{0});
  return fields;
}

}  // namespace

void write_archive(const std::string& path, const std::vector<std::string>& files) {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  std::string archive, directory;
  for (const std::string& file : files) {
    const std::string name = std::filesystem::path(file).filename(), content = read_file(file);
    HONE_CHECK(content.size() < kMost, "{} has 4 GiB and more, which a .tea archive cannot hold", file);
    const std::string packed = deflated(content), fields = fields_of(name, content, packed);
    put(directory, kEntry), put(directory, kVersion);
    directory += fields;
    for (int i = 0; i < 3; ++i) put(directory, uint16_t{0});  // comment, disk, attributes inside
    put(directory, uint32_t{0}), put(directory, static_cast<uint32_t>(archive.size()));
    directory += name;
    put(archive, kLocal);
    archive.append(fields).append(name).append(packed);
    HONE_CHECK(archive.size() + directory.size() < kMost, "the files of {} have more than 4 GiB together", path);
  }
  const size_t start = archive.size();
  archive += directory;
  put(archive, kEnd), put(archive, uint32_t{0});
  for (int i = 0; i < 2; ++i) put(archive, static_cast<uint16_t>(files.size()));
  put(archive, static_cast<uint32_t>(directory.size())), put(archive, static_cast<uint32_t>(start));
  put(archive, uint16_t{0});
  write_file(path, archive);
}

}  // namespace hone
