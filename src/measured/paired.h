// SPDX-License-Identifier: Apache-2.0
//
// Whether one of two things that took turns is faster. A round measures both, so what disturbs a machine for longer than a round disturbs
// both; the ratios of the rounds are then drawn anew again and again (bootstrap), which says how far their mean can be trusted.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hone {

enum class PairedVerdict { faster, slower, undecided };
/// "faster", "slower", "cannot be told apart".
std::string_view verdict_text(PairedVerdict verdict);

struct PairedRatio {
  double ratio = 1, low = 1, high = 1;  // of times; the bounds hold it with 95 % confidence

  PairedVerdict verdict() const {
    return high < 1 ? PairedVerdict::faster : low > 1 ? PairedVerdict::slower : PairedVerdict::undecided;
  }
};

/// How `times` stand to `reference`, round by round: the geometric mean of the rounds' ratios. Both have as many, all above 0; of a single
/// round nothing can be said, so its bounds are open.
PairedRatio paired_ratio(std::span<const double> times, std::span<const double> reference, uint64_t seed = 2024);

}  // namespace hone
