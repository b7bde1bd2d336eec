// SPDX-License-Identifier: Apache-2.0
//
// TopK, a kernel of the family along_axis, and how that family sees a tensor.
#pragma once

#include <algorithm>
#include <memory>

#include "backends/cpu/support/node_code.h"

namespace hone::cpu {

/// A tensor as outer x n x inner; a line is the n elements along the axis.
struct Lines {
  int64_t outer = 1, n = 1, inner = 1;
  int64_t count() const { return outer * inner; }
  /// Calls `body(line, count)` for lines beside each other, `most` of them: their elements at one place lie behind each other.
  static constexpr int64_t kStrip = 64;
  template <typename Body>
  void for_strips(int64_t begin, int64_t end, const Body& body, int64_t most = kStrip) const {
    for (int64_t count = 0; begin < end; begin += count) {
      count = std::min({most, end - begin, inner - begin % inner});
      body(begin, count);
    }
  }
  /// Where a line begins in a tensor with `length` elements along the axis.
  int64_t start(int64_t line, int64_t length) const { return line / inner * length * inner + line % inner; }
};

std::shared_ptr<const CpuKernel> top_k(const Lines& lines, bool largest, const BoundNode& node, const CpuInfo& info);

}  // namespace hone::cpu
