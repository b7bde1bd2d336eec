// SPDX-License-Identifier: Apache-2.0
//
// Regions that treat the entries of a batch alike. The reference takes its time: of a large batch it evaluates two entries, which
// the tuner repeats over the whole batch, and some of the results are held against theirs.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace hone {

/// The region with two entries instead of all; nothing where it is small, or may mix entries.
std::optional<Graph> with_two_entries(const Graph& region);

/// Which of the two entry `index` of `count` repeats: they alternate, and the last one is the second.
inline int64_t repeated_entry(int64_t index, int64_t count) { return index + 1 == count ? 1 : index % 2; }

}  // namespace hone
