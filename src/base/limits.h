// SPDX-License-Identifier: Apache-2.0
//
// How large what comes from files may be: one table, which `hone doctor --limits` prints. Real models stay far below; a
// hostile one meets an error that names the limit before it costs much time or memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hone {

/// Graphs in attributes, calls of functions, graphs in IR text.
inline constexpr int kMaxNesting = 64;
/// Sequences and optionals around a tensor.
inline constexpr size_t kMaxTypeNesting = 8;
/// After the model's functions were put in place of their calls.
inline constexpr size_t kMaxNodes = 500'000;
inline constexpr size_t kMaxRank = 32;
/// Of one node or tensor, the path of function calls before it included.
inline constexpr size_t kMaxNameBytes = 4096;
/// Products of sums of symbols multiply out: a canonical expression may hold this many terms and characters.
inline constexpr size_t kMaxSizeTerms = 4096;
inline constexpr size_t kMaxSizeText = 16384;
/// Integer tensors up to this many elements are followed as expressions.
inline constexpr int64_t kMaxSymbolicElements = 4096;
/// Constant results beyond this size are computed when the engine runs, unless their operands are as large.
inline constexpr int64_t kMaxFoldedBytes = 16 << 20;
/// Of one encoded image: what it takes to hold it decoded, whatever the size of the encoded one.
inline constexpr int64_t kMaxImagePixels = 1 << 26;
/// A timing cache that is read whole.
inline constexpr int64_t kMaxCacheBytes = 256 << 20;

struct Limit {
  std::string_view name;
  int64_t value;
  std::string_view unit, meaning;
};

/// All of the above.
std::span<const Limit> limit_table();

}  // namespace hone
