// SPDX-License-Identifier: Apache-2.0
//
// Regions that treat the entries of a batch alike, or the rows of a batch of one. The reference takes its time: of many it evaluates two,
// which the tuner repeats over all, and some of the results are held against theirs.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace hone {

/// A region of which two entries along an axis stand for all. Before that axis there are but axes of one, so that entries follow each
/// other in linear memory.
struct FewEntries {
  Graph region;  // with two entries
  size_t axis = 0;
  int64_t count = 0;  // of the whole region
};

/// Along the first axis; nothing where the region is small, or may mix entries.
std::optional<FewEntries> with_two_entries(const Graph& region);
/// The same along the second axis of a batch of one. Operands that all rows share are whole.
std::optional<FewEntries> with_two_rows(const Graph& region);

/// The region with one of its `count` entries; nothing where it may mix them, or an input is the same for all.
std::optional<Graph> one_entry_of(const Graph& region, const Dim& count);

/// Which of the two entry `index` of `count` repeats: they alternate, and the last one is the second.
inline int64_t repeated_entry(int64_t index, int64_t count) { return index + 1 == count ? 1 : index % 2; }

}  // namespace hone
