// SPDX-License-Identifier: Apache-2.0
//
// Which layers stay in floating point, where the others are computed in few bits.
#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace hone {

/// Names of the model's nodes.
using NodeNames = std::set<std::string, std::less<>>;

/// What trtexec's --precisionFile reads.
inline std::string keep_list_text(const NodeNames& kept) {
  std::string text = "# layers that stay in floating point, for trtexec's --precisionFile\n";
  for (const std::string& node : kept) text += node + ":fp32\n";
  return text;
}

/// The least count up to `most` for which `enough` holds, which is taken to hold for all above it, and for `most` anyway: 0 is
/// asked, and then halves.
template <typename Enough>
size_t least_count(size_t most, const Enough& enough) {
  if (most == 0 || enough(0)) return 0;
  size_t too_few = 0, reached = most;
  while (reached - too_few > 1) {
    const size_t middle = (too_few + reached) / 2;
    (enough(middle) ? reached : too_few) = middle;
  }
  return reached;
}

}  // namespace hone
