// SPDX-License-Identifier: Apache-2.0
//
// A sliding window in a kernel's code.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "ops/window.h"

namespace hone::cuda {

enum class AutoPad { given, valid, same_upper, same_lower };
constexpr std::array<std::string_view, 4> field_names(AutoPad) {
  return {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
}

/// Lists are per spatial axis; pads begin with those before all axes.
struct WindowCode {
  Dims kernel = {}, strides = {}, dilations = {}, pads = {};
  AutoPad auto_pad = AutoPad::given;

  static constexpr int64_t kMost = (1 << 30) - 1;  // of a size, a step or a padding
  static constexpr size_t kMostSpatial = 3;
  static void fields(auto& self, auto& visit) {
    visit("kernel_shape", self.kernel, 1, kMost, kMostSpatial);
    visit("strides", self.strides, 1, kMost, kMostSpatial);
    visit("dilations", self.dilations, 1, kMost, kMostSpatial);
    visit("pads", self.pads, -kMost, kMost, 2 * kMostSpatial);
    visit("auto_pad", self.auto_pad);
  }
  static WindowCode of(const WindowAttrs& window) {
    const auto names = field_names(AutoPad{});
    const auto at = std::find(names.begin(), names.end(), window.auto_pad);
    return {window.kernel, window.strides, window.dilations, window.pads, static_cast<AutoPad>(at - names.begin())};
  }
  /// Throws Error where it is not one over so many spatial axes.
  WindowAttrs over(size_t spatial) const {
    const std::string padding(field_names(auto_pad)[static_cast<size_t>(auto_pad)]);
    return {{{"kernel_shape", kernel},
             {"strides", strides},
             {"dilations", dilations},
             {"pads", pads},
             {"auto_pad", padding}},
            spatial,
            {}};
  }
};

}  // namespace hone::cuda
