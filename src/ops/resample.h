// SPDX-License-Identifier: Apache-2.0
//
// How Resize samples one axis: which neighbours of the input an output position takes, with which weights. What the
// reference and the kernels of the backends share.
#pragma once

#include <array>
#include <string_view>
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

enum class ResampleMode { nearest, linear, cubic };
constexpr std::array<std::string_view, 3> field_names(ResampleMode) { return {"nearest", "linear", "cubic"}; }

enum class ResampleCoordinates {
  half_pixel,
  asymmetric,
  align_corners,
  pytorch_half_pixel,
  half_pixel_symmetric,
  tf_half_pixel_for_nn,
  tf_crop_and_resize,
};
constexpr std::array<std::string_view, 7> field_names(ResampleCoordinates) {
  return {"half_pixel",           "asymmetric",           "align_corners",     "pytorch_half_pixel",
          "half_pixel_symmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
}

enum class ResampleRounding { round_prefer_floor, round_prefer_ceil, floor, ceil };
constexpr std::array<std::string_view, 4> field_names(ResampleRounding) {
  return {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
}

/// What all axes of a Resize have in common.
struct ResampleRule {
  ResampleMode mode = ResampleMode::nearest;
  ResampleCoordinates coordinates = ResampleCoordinates::half_pixel;
  ResampleRounding rounding = ResampleRounding::round_prefer_floor;  // of nearest
  double cubic = -0.75;                                              // the coefficient of a cubic curve
  bool exclude_outside = false;                                      // weights of neighbours that do not exist
  bool antialias = false;

  ResampleRule() = default;
  /// Throws Error for modes that do not exist.
  explicit ResampleRule(const Attrs& attrs);

  /// For what a kernel keeps (device/fields.h); none filters against aliasing.
  static void fields(auto& self, auto& visit) {
    visit("mode", self.mode);
    visit("coordinates", self.coordinates);
    visit("rounding", self.rounding);
    visit("cubic", self.cubic);
    visit("exclude_outside", self.exclude_outside);
  }
};

/// The axes that a Resize names; all when it names none.
std::vector<int64_t> resampled_axes(const Attrs& attrs, size_t rank);
/// Whether the axis stays as it is.
bool is_identity(const AxisResampling& plan, const ResampleRule& rule);
/// The neighbours of output position `out`, at most four without antialiasing; none when it lies outside and is extrapolated.
std::vector<ResampleTap> taps_of(const AxisResampling& plan, const ResampleRule& rule, int64_t out);

}  // namespace hone
