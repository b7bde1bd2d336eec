// SPDX-License-Identifier: Apache-2.0
//
// How Resize samples one axis: which neighbours of the input an output position takes, with which weights. What the
// reference and the kernels of the backends share.
#pragma once

#include <vector>

#include "tensor/attrs.h"

namespace hone {

struct AxisResampling {
  int64_t in = 1, out = 1;
  double scale = 1;
  double roi_start = 0, roi_end = 1;
};

struct ResampleTap {
  int64_t index;
  double weight;
};

/// The axes that a Resize names; all when it names none.
std::vector<int64_t> resampled_axes(const Attrs& attrs, size_t rank);
/// Whether the axis stays as it is.
bool is_identity(const AxisResampling& plan, const Attrs& attrs);
/// The neighbours of output position `out`, at most four without antialiasing; none when it lies outside and is extrapolated. Throws Error for
/// modes that do not exist.
std::vector<ResampleTap> taps_of(const AxisResampling& plan, const Attrs& attrs, int64_t out);

}  // namespace hone
