// SPDX-License-Identifier: Apache-2.0
//
// What calibration keeps of a tensor: its range, and how often which magnitude occurs. The memory is the same however many values
// are added, and the result depends on neither their order nor how they are divided into batches, but for bins that two
// magnitudes share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hone {

class Histogram {
 public:
  static constexpr size_t kBins = 2048;

  /// Counts the values. Throws Error when one is not finite.
  void add(std::span<const float> values);

  uint64_t count() const { return count_; }
  /// Of all values; 0 when there are none.
  float min() const { return min_; }
  float max() const { return max_; }
  /// The largest magnitude.
  float magnitude() const;
  /// Bin i counts the magnitudes from i to i + 1 times the width; the last one those beyond its end that rounding leaves there.
  const std::array<uint64_t, kBins>& bins() const { return bins_; }
  double width() const { return width_; }

 private:
  void make_room(float magnitude);

  std::array<uint64_t, kBins> bins_{};
  double width_ = 0;
  uint64_t count_ = 0;
  float min_ = 0, max_ = 0;
};

}  // namespace hone
