// SPDX-License-Identifier: Apache-2.0
//
// Sliding windows: what convolutions and pools share - the sizes of results, padding rules, and a table that says which
// input element every tap of every window reads.
#pragma once

#include <vector>

#include "ir/op.h"

namespace hone {

/// Begin and end padding of an axis so that its result has ceil(input / stride) elements; an odd one stands at the end where `upper`.
std::pair<int64_t, int64_t> same_padding(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, bool upper);

/// kernel_shape, strides, dilations, pads, auto_pad, ceil_mode as a node carries them; lists are complete.
struct WindowAttrs {
  Dims kernel, strides, dilations, pads;
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false;

  /// `kernel` is used when the node carries none (convolutions: the weight's sizes). Checks lengths and ranges.
  WindowAttrs(const Attrs& attrs, size_t rank, Dims kernel);
  /// Sizes of a result axis for a symbolic input size.
  Dim result_size(const Dim& input, size_t axis) const;
  /// Begin and end padding of an axis for a known input size.
  std::pair<int64_t, int64_t> padding(int64_t input, size_t axis) const;
};

/// offsets[tap * results + result]: the flat spatial input element, or -1 in the padding.
struct WindowTable {
  Dims result;  ///< spatial sizes of the result
  int64_t taps = 1, results = 1, inputs = 1;
  std::vector<int32_t> offsets;
  std::vector<int32_t> padded_taps;  ///< per result: taps inside input and padding (beyond it lies what ceil_mode adds)

  WindowTable(const WindowAttrs& window, std::span<const int64_t> input, std::span<const int64_t> result);
};

Dims spatial_of(std::span<const int64_t> dims);

/// For rules: writes kernel_shape, strides, pads, dilations in full and turns auto_pad into pads where sizes are known.
void complete_window_attrs(ImportContext& context, Attrs& attrs, const Shape& input, Dims kernel,
                           bool with_dilations = true);
/// The weight's spatial sizes.
Dims kernel_of_weight(const Shape& weight);

}  // namespace hone
