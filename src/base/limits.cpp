// SPDX-License-Identifier: Apache-2.0
#include "base/limits.h"

#include "base/data_limits.h"

namespace hone {

std::span<const Limit> limit_table() {
  static constexpr Limit kTable[] = {
      {"nesting", kMaxNesting, "levels", "bodies of If, Loop and Scan in each other; functions that call functions"},
      {"type nesting", static_cast<int64_t>(kMaxTypeNesting), "levels",
       "sequences, optionals and maps around a tensor"},
      {"nodes", static_cast<int64_t>(kMaxNodes), "nodes", "of a model, its functions put in place of their calls"},
      {"rank", static_cast<int64_t>(kMaxRank), "axes", "of a tensor"},
      {"name", static_cast<int64_t>(kMaxNameBytes), "bytes", "of a node or tensor, with the calls that lead to it"},
      {"size terms", static_cast<int64_t>(kMaxSizeTerms), "terms", "of a size as an expression of symbols"},
      {"size text", static_cast<int64_t>(kMaxSizeText), "bytes", "of a size as an expression of symbols"},
      {"contents", kMaxSymbolicElements, "elements", "of an integer tensor that is followed as expressions"},
      {"folded result", kMaxFoldedBytes, "bytes", "of a constant result that is computed at build time"},
      {"image", kMaxImagePixels, "pixels", "of one image that ImageDecoder reads"},
      {"compressed array", static_cast<int64_t>(kMaxInflatedBytes), "bytes",
       "of an array of a compressed .npz archive that is read whole"},
      {"inflation", static_cast<int64_t>(kMaxInflation), "times",
       "what compressed data claim to be, against their size"},
      {"timing cache", kMaxCacheBytes, "bytes", "of the file"},
  };
  return kTable;
}

}  // namespace hone
