// SPDX-License-Identifier: Apache-2.0
//
// The fewest things that still do something (fail, or pass): large chunks are left out first, then smaller ones, at last one by one,
// until not a single one more can go. What is left is minimal in that sense, not the smallest of all sets.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace hone {

struct FewestRules {
  size_t first_chunk = 0;  // 0: half of all
  /// What has to go with the things that go; may be empty.
  std::function<std::vector<size_t>(const std::vector<size_t>&)> goes_along;
};

/// `all` ascending, of which `holds` is known. An empty rest is never asked about.
std::vector<size_t> fewest(std::vector<size_t> all, const FewestRules& rules,
                           const std::function<bool(const std::vector<size_t>&)>& holds);

/// The least count from 0 to `most` for which `holds`, which is known of `most`; by halves, or one by one from `most` down. `holds` of
/// less than `least` is not asked.
size_t least_count(size_t least, size_t most, bool linear, const std::function<bool(size_t)>& holds);

}  // namespace hone
