// SPDX-License-Identifier: Apache-2.0
//
// XXH3 behind two names, with the widest vectors that the processor has; the only file that sees xxHash.
#include "base/hash.h"

#include <fmt/format.h>
#include <xxh_x86dispatch.h>

namespace hone {

uint64_t hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }
uint64_t hash64(std::string_view text) { return hash64(std::as_bytes(std::span(text))); }

std::string hash_hex(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}
std::string hash_hex(std::string_view text) { return hash_hex(std::as_bytes(std::span(text))); }

}  // namespace hone
