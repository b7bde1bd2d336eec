// SPDX-License-Identifier: Apache-2.0
//
// Stable 64- and 128-bit hashes (XXH3) for keys, checksums and tactic numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hone {

uint64_t hash64(std::span<const std::byte> bytes);
uint64_t hash64(std::string_view text);
/// 32 hexadecimal digits of the 128-bit hash.
std::string hash_hex(std::span<const std::byte> bytes);
std::string hash_hex(std::string_view text);

}  // namespace hone
