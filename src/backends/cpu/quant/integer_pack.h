// SPDX-License-Identifier: Apache-2.0
//
// A as tiles read it: where its rows and taps lie, and, unless it can be multiplied in place, the copy with a border of zero points
// and whole steps: [image][spatial axes][group][step]. Where columns have zero points, the sum of each window too.
#pragma once

#include <cstddef>
#include <vector>

#include "backends/cpu/quant/integer_kernel.h"

namespace hone::cpu {

class IntegerPack {
 public:
  enum class Copy { where_needed, always, with_window_sums };
  IntegerPack(const IntegerShape& shape, const IntegerConfig& config, Copy copy);

  /// 0 where A is multiplied in place.
  int phases() const { return packs_ ? sums_ ? 2 : 1 : 0; }
  void run(int phase, int worker, int workers, const std::byte* a, int64_t zero, std::byte* packed) const;
  /// Of the copy and the sums.
  int64_t bytes() const { return packs_ ? copy_bytes() + pixel_sums_bytes() + window_sums_bytes() : 0; }
  /// [group][pixel of the result]; null where there are none.
  const uint32_t* window_sums(const std::byte* packed) const {
    return sums_ ? reinterpret_cast<const uint32_t*>(packed + copy_bytes() + pixel_sums_bytes()) : nullptr;
  }

  // Of what is multiplied, in bytes.
  int64_t image_bytes() const { return pixels_ * pixel_bytes_; }
  /// From the window of a pixel of the result to the next one's.
  int64_t stride() const { return s_.strides.back() * pixel_bytes_; }
  /// Where the window of a result row's first pixel begins; rows are counted over all images.
  int64_t place(int64_t row, int64_t group) const {
    return row / rows() * image_bytes() + row_pixels_[static_cast<size_t>(row % rows())] * pixel_bytes_ +
           group * group_bytes_;
  }
  /// Of an image of the result.
  int64_t rows() const { return static_cast<int64_t>(row_pixels_.size()); }
  /// Where in a window the steps of each tap begin. Neighbours that follow each other in memory are one.
  const std::vector<int64_t>& taps() const { return taps_; }
  /// The same of each.
  std::vector<int64_t> all_taps() const;

 private:
  bool fits_in_place() const;
  void place_rows();
  void place_taps();
  int64_t pixel_at(const Dims& indices) const;

  int64_t copy_bytes() const;
  int64_t pixel_sums_bytes() const;
  int64_t window_sums_bytes() const;
  uint32_t* pixel_sums(std::byte* packed) const { return reinterpret_cast<uint32_t*>(packed + copy_bytes()); }

  template <typename To, typename From>
  void pack_rows(int worker, int workers, const From* a, int64_t zero, std::byte* packed) const;
  template <typename To, typename From>
  void pack_kept(int worker, int workers, const From* a, std::byte* packed) const;
  template <typename To, typename From>
  void copy_pixels(const From* image, int64_t first, int64_t count, To* to) const;
  template <typename To>
  void sum_pixels(const To* row, int64_t count, uint32_t* to) const;
  void sum_windows(int worker, int workers, std::byte* packed) const;
  /// The pixel of A's image that a row of the copy begins with, or -1 for a row of the border.
  int64_t source_of(int64_t row) const;
  /// The same where some are kept.
  int64_t kept_source(int64_t row) const;

  IntegerShape s_;
  bool sums_, packs_ = true;
  int64_t depth_;  // elements of a pixel in a group, whole steps
  int64_t added_, element_bytes_;
  Dims sizes_;  // spatial axes of what is multiplied
  int64_t pixels_ = 1, pixel_bytes_ = 1, group_bytes_ = 1;
  std::vector<int64_t> row_pixels_, tap_pixels_, taps_;
};

}  // namespace hone::cpu
