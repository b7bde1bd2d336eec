// SPDX-License-Identifier: Apache-2.0
//
// Everything that only moves elements is a list of strided copies: Transpose, Reformat, Concat, Slice, Split, Expand, Tile,
// Pad, DepthToSpace, upsampling by whole factors. A copy is brought to its simplest form (axes sorted by the order of the
// destination, merged where both sides allow) and the two innermost axes decide how it is done: whole rows, repeated
// elements, transposed tiles, or element by element. It is cut into items that workers share.
#pragma once

#include <cstdint>
#include <vector>

#include "regions/copy_plan.h"

namespace hone::cpu {

/// Whether stretches of bytes lie alike on both sides, or repeat one element; otherwise elements change places one by one.
bool moves_rows(const StridedCopy& copy);

/// to[j * to_step + i] = from[i * from_step + j] for `rows` rows of `columns` floats.
void transpose_floats(const float* from, int64_t from_step, float* to, int64_t to_step, int64_t rows, int64_t columns);

class CopyLoops {
 public:
  /// `element` is 1, 2, 4 or 8 bytes.
  CopyLoops(const StridedCopy& copy, size_t element);
  int64_t items() const { return outer_ * parts_; }
  int64_t elements() const { return elements_; }
  void run(int64_t begin, int64_t end, const void* from, void* to) const;

 private:
  enum class Kind { rows, repeat, transpose, elements };
  template <typename T>
  void run_as(int64_t begin, int64_t end, const T* from, T* to) const;

  size_t element_;
  Kind kind_ = Kind::elements;
  Dims sizes_, from_, to_;  // outer axes, outermost first
  int64_t from_offset_ = 0, to_offset_ = 0;
  int64_t n_ = 1, n_from_ = 1, n_to_ = 1;  // innermost axis of the destination
  int64_t m_ = 1, m_from_ = 0, m_to_ = 0;  // the axis around it; for transposed tiles the innermost one of the source
  int64_t outer_ = 1, parts_ = 1, part_ = 1;  // an item is `part_` steps of the larger of the two inner axes
  bool split_n_ = false;
  int64_t elements_ = 1;
};

}  // namespace hone::cpu
