// SPDX-License-Identifier: Apache-2.0
#include "tools/debug/fewest.h"

#include <algorithm>

namespace hone {

std::vector<size_t> fewest(std::vector<size_t> all, const FewestRules& rules,
                           const std::function<bool(const std::vector<size_t>&)>& holds) {
  size_t chunk = rules.first_chunk != 0 ? rules.first_chunk : (all.size() + 1) / 2;
  bool shrunk = false;
  while (all.size() > 1) {
    chunk = std::clamp<size_t>(chunk, 1, all.size() - 1);
    shrunk = false;
    for (size_t end = all.size(); end > 0 && all.size() > 1;) {
      end = std::min(end, all.size());
      const size_t start = end - std::min(chunk, end);
      std::vector<size_t> going(all.begin() + static_cast<std::ptrdiff_t>(start),
                                all.begin() + static_cast<std::ptrdiff_t>(end));
      if (rules.goes_along) going = rules.goes_along(going);
      std::vector<size_t> rest;
      std::ranges::set_difference(all, going, std::back_inserter(rest));
      if (!rest.empty() && holds(rest)) {
        all = std::move(rest);
        shrunk = true;
      }
      end = start;
    }
    if (chunk == 1 && !shrunk) break;
    if (chunk > 1) chunk /= 2;
  }
  return all;
}

size_t least_count(size_t least, size_t most, bool linear, const std::function<bool(size_t)>& holds) {
  size_t below = least;  // of which nothing is known
  while (below < most) {
    const size_t middle = linear ? most - 1 : below + (most - below) / 2;
    if (holds(middle)) most = middle;
    else if (linear) break;
    else below = middle + 1;
  }
  return most;
}

}  // namespace hone
