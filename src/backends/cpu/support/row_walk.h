// SPDX-License-Identifier: Apache-2.0
//
// The element loop over several tensors with strides of their own: axes that all of them walk evenly are merged, the
// innermost axis is the row that a kernel loops over itself, and the rows can be entered anywhere, so that workers share them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/shape.h"

namespace hone::cpu {

class RowWalk {
 public:
  RowWalk() = default;
  /// strides[k][axis] in elements; axes outermost first.
  RowWalk(const Dims& sizes, const std::vector<Dims>& strides) : strides_(strides.size()) {
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] == 1) continue;
      if (merges(sizes[axis], strides, axis)) {
        sizes_.back() *= sizes[axis];
        for (size_t k = 0; k < strides.size(); ++k) strides_[k].back() = strides[k][axis];
      } else {
        sizes_.push_back(sizes[axis]);
        for (size_t k = 0; k < strides.size(); ++k) strides_[k].push_back(strides[k][axis]);
      }
    }
    if (sizes_.empty()) {
      sizes_.push_back(1);
      for (Dims& own : strides_) own.push_back(0);
    }
    for (size_t i = 0; i + 1 < sizes_.size(); ++i) rows_ *= sizes_[i];
  }

  int64_t rows() const { return rows_; }
  int64_t length() const { return sizes_.back(); }
  int64_t stride(size_t tensor) const { return strides_[tensor].back(); }
  /// Where a row begins in every tensor.
  void seek(int64_t row, std::span<int64_t> offsets) const {
    for (int64_t& offset : offsets) offset = 0;
    for (size_t axis = sizes_.size() - 1; axis-- > 0; row /= sizes_[axis]) {
      const int64_t i = row % sizes_[axis];
      for (size_t k = 0; k < offsets.size(); ++k) offsets[k] += i * strides_[k][axis];
    }
  }

 private:
  bool merges(int64_t size, const std::vector<Dims>& strides, size_t axis) const {
    if (sizes_.empty()) return false;
    for (size_t k = 0; k < strides.size(); ++k)
      if (strides_[k].back() != size * strides[k][axis]) return false;
    return true;
  }

  Dims sizes_{};
  std::vector<Dims> strides_;
  int64_t rows_ = 1;
};

}  // namespace hone::cpu
