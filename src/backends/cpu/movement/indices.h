// SPDX-License-Identifier: Apache-2.0
//
// Reading the operands that are indices: of either width, counted from the end when negative, and brought inside when they
// lie outside. What gathers and scatters share.
#pragma once

#include <algorithm>

#include "backends/cpu/support/node_code.h"

namespace hone::cpu {

inline bool is_index_type(DType dtype) { return dtype == DType::i64 || dtype == DType::i32; }

class IndexReader {
 public:
  IndexReader(const NodeOperand& indices, const Bindings& bindings)
      : data_(indices.data(bindings)), wide_(indices.type.dtype == DType::i64) {}
  int64_t operator[](int64_t i) const {
    return wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
  }
  /// Index `i` as one of 0..size-1.
  int64_t inside(int64_t i, int64_t size) const {
    const int64_t index = (*this)[i];
    return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size - 1);
  }

 private:
  const void* data_;
  bool wide_;
};

/// Positions of `depth` indices each into the axes behind the first `batch`.
class PositionReader {
 public:
  PositionReader(const Dims& data, size_t batch, size_t depth) : batch_(batch) {
    const Dims strides = strides_of(data);
    sizes_.assign(data.begin() + static_cast<std::ptrdiff_t>(batch),
                  data.begin() + static_cast<std::ptrdiff_t>(batch + depth));
    strides_.assign(strides.begin() + static_cast<std::ptrdiff_t>(batch),
                    strides.begin() + static_cast<std::ptrdiff_t>(batch + depth));
    run_ = elements(std::span(data).subspan(batch + depth));
  }
  size_t batch() const { return batch_; }
  /// Elements behind a position.
  int64_t run() const { return run_; }
  /// Where position `i` lies within its batch, in elements.
  int64_t offset(const IndexReader& index, int64_t i) const {
    int64_t at = 0;
    for (size_t axis = 0; axis < sizes_.size(); ++axis)
      at += index.inside(i * static_cast<int64_t>(sizes_.size()) + static_cast<int64_t>(axis), sizes_[axis]) *
            strides_[axis];
    return at;
  }

 private:
  size_t batch_;
  Dims sizes_, strides_;
  int64_t run_ = 1;
};

}  // namespace hone::cpu
