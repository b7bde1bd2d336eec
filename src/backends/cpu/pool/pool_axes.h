// SPDX-License-Identifier: Apache-2.0
//
// Windows of pools, one axis at a time: the taps of a window that lie inside the input are a box, so a span per axis and
// coordinate says all, where a table of every tap would outgrow the tensor.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "ops/window.h"

namespace hone::cpu {

/// The taps of one result coordinate that lie inside the input.
struct TapSpan {
  int64_t first = 0, count = 0;  // input coordinate of the first tap inside, number of taps inside
  int64_t padded = 0;            // taps inside input and padding
};

struct PoolAxis {
  int64_t input = 1, step = 1;  // size; distance of taps
  std::vector<TapSpan> spans = std::vector(1, TapSpan{0, 1, 1});
};

inline PoolAxis pool_axis(const WindowAttrs& window, size_t axis, int64_t input, int64_t result) {
  const auto [before, after] = window.padding(input, axis);
  HONE_CHECK(result <= 0 || result - 1 < (input + after + before + window.strides[axis] - 1) / window.strides[axis],
             "a pool in the plan has {} results along an axis of {}", result, input);
  PoolAxis made{input, window.dilations[axis], {}};
  made.spans.reserve(static_cast<size_t>(std::max<int64_t>(result, 0)));
  for (int64_t i = 0; i < result; ++i) {
    const int64_t start = i * window.strides[axis] - before;
    const auto taps_before = [&](int64_t end) {
      return end <= start ? 0 : std::min(window.kernel[axis], (end - start - 1) / made.step + 1);
    };
    const int64_t outside = taps_before(0), inside = taps_before(input) - outside;
    const TapSpan span{inside > 0 ? start + outside * made.step : -1, inside, taps_before(input + after)};
    made.spans.push_back(span);
  }
  return made;
}

/// Depth, height and width of a pool over one to three spatial axes; those that it lacks have one coordinate.
using PoolAxes = std::array<PoolAxis, 3>;
inline PoolAxes pool_axes(const WindowAttrs& window, const Dims& in, const Dims& out) {
  PoolAxes axes;
  const size_t spatial = in.size() - 2;
  for (size_t i = 0; i < spatial; ++i) axes[3 - spatial + i] = pool_axis(window, i, in[2 + i], out[2 + i]);
  return axes;
}

}  // namespace hone::cpu
