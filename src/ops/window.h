// SPDX-License-Identifier: Apache-2.0
//
// Sliding windows: what convolutions and pools share - the sizes of results, padding rules, and a table that says which
// input element every tap of every window reads.
#pragma once

#include <vector>

#include "base/limits.h"
#include "ir/op.h"

namespace hone {

/// Begin and end padding of an axis so that its result has ceil(input / stride) elements; an odd one stands at the end where `upper`.
std::pair<int64_t, int64_t> same_padding(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, bool upper);

/// kernel_shape, strides, dilations, pads, auto_pad, ceil_mode as a node carries them; lists are complete.
struct WindowAttrs {
  Dims kernel, strides, dilations, pads;
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false;

  WindowAttrs() = default;
  /// `kernel` is used when the node carries none (convolutions: the weight's sizes). Checks lengths and ranges.
  WindowAttrs(const Attrs& attrs, size_t rank, Dims kernel);
  /// Throws Error where what fields() brought does not describe a window over `rank` axes.
  void check(size_t rank) const;
  /// Sizes of a result axis for a symbolic input size.
  Dim result_size(const Dim& input, size_t axis) const;
  /// Begin and end padding of an axis for a known input size.
  std::pair<int64_t, int64_t> padding(int64_t input, size_t axis) const;

  static constexpr int64_t kMost = (1 << 30) - 1;
  /// What a kernel keeps of it (device/fields.h): all but ceil_mode, which says no more once the result's sizes are known.
  static void fields(auto& self, auto& visit) {
    visit("kernel_shape", self.kernel, 1, kMost, kMaxRank);
    visit("strides", self.strides, 1, kMost, kMaxRank);
    visit("dilations", self.dilations, 1, kMost, kMaxRank);
    visit("pads", self.pads, -kMost, kMost, 2 * kMaxRank);
    visit("auto_pad", self.auto_pad);
  }
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

/// Of a convolution: each result meets one filter of a group.
int64_t flops_of_filters(const Node& node, const SymbolValues& sizes);

/// For rules: writes kernel_shape, strides, pads, dilations in full and turns auto_pad into pads where sizes are known.
void complete_window_attrs(ImportContext& context, Attrs& attrs, const Shape& input, Dims kernel,
                           bool with_dilations = true);
/// The weight's spatial sizes.
Dims kernel_of_weight(const Shape& weight);

}  // namespace hone
