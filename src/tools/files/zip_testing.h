// SPDX-License-Identifier: Apache-2.0
//
// Zip archives with one entry, whose fields may be wrong.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>

namespace hone {

inline std::string little(uint64_t value, int size) {
  std::string out;
  for (int i = 0; i < size; ++i) out += static_cast<char>(i < 8 ? value >> (8 * i) & 0xff : 0);
  return out;
}

/// Deflate without zlib's header.
inline std::string deflated(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline uint64_t checksum_of(const std::string& content) {
  return crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
}

struct ZipSample {
  std::string packed;
  uint64_t method = 0, packed_size = 0, size = 0, checksum = 0;
  uint64_t flags = 0, directory = 0, local_name = 5;  // `directory` is added to where it stands
  std::string name = "x.npy", extra;

  static ZipSample stored(const std::string& content) {
    return {.packed = content, .packed_size = content.size(), .size = content.size(), .checksum = checksum_of(content)};
  }
  static ZipSample compressed(const std::string& content) {
    ZipSample sample = stored(content);
    sample.packed = deflated(content);
    sample.packed_size = sample.packed.size();
    sample.method = 8;
    return sample;
  }

  std::string text() const {
    const std::string sizes = little(checksum, 4) + little(packed_size, 4) + little(size, 4);
    const std::string local = std::string("PK\3\4", 4) + little(20, 2) + little(flags, 2) + little(method, 2) +
                              little(0, 4) + sizes + little(local_name, 2) + little(0, 2) + name;
    const std::string entry = std::string("PK\1\2", 4) + little(20, 2) + little(20, 2) + little(flags, 2) +
                              little(method, 2) + little(0, 4) + sizes + little(name.size(), 2) +
                              little(extra.size(), 2) + little(0, 10) + little(0, 4) + name + extra;
    return local + packed + entry + std::string("PK\5\6", 4) + little(0, 4) + little(1, 2) + little(1, 2) +
           little(entry.size(), 4) + little(local.size() + packed.size() + directory, 4) + little(0, 2);
  }
};

}  // namespace hone
