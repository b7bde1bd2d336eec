// SPDX-License-Identifier: Apache-2.0
//
// How large what compressed files claim to hold may be: part of the table of limits.h.
#pragma once

#include <cstdint>

namespace hone {

/// An array of a compressed archive that is read whole; samples are read batch by batch, whatever their number.
inline constexpr uint64_t kMaxInflatedBytes = uint64_t{4} << 30;
/// Bytes that a byte of compressed data can stand for: no stream of deflate does better.
inline constexpr uint64_t kMaxInflation = 1032;

}  // namespace hone
