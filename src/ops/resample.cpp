// SPDX-License-Identifier: Apache-2.0

#include "ops/resample.h"

#include <algorithm>
#include <cmath>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/node_error.h"
#include "base/numbers.h"
#include "base/text.h"

namespace hone {
namespace {

template <typename E>
E value_of(const Attrs& attrs, std::string_view name) {
  const std::optional<E> value = value_named<E>(attrs.text(name));
  if (!value)
    throw AttributeError(fmt::format("unknown {} '{}' of Resize", name, attrs.text(name)),
                         fmt::format("there are {}", join(field_names(E{}), ", ")));
  return *value;
}

double source_coordinate(const AxisResampling& plan, ResampleCoordinates coordinates, double out) {
  const double scale = plan.scale, length = static_cast<double>(plan.in);
  switch (coordinates) {
    case ResampleCoordinates::half_pixel: break;
    case ResampleCoordinates::asymmetric: return out / scale;
    case ResampleCoordinates::align_corners: {
      const double width = scale * length;  // before it is rounded down to whole elements
      return width == 1 ? 0 : out * (length - 1) / (width - 1);
    }
    case ResampleCoordinates::pytorch_half_pixel: return plan.out > 1 ? (out + 0.5) / scale - 0.5 : 0;
    case ResampleCoordinates::half_pixel_symmetric: {
      const double adjustment = static_cast<double>(plan.out) / (scale * length);
      return length / 2 * (1 - adjustment) + (out + 0.5) / scale - 0.5;
    }
    case ResampleCoordinates::tf_half_pixel_for_nn: return (out + 0.5) / scale;
    case ResampleCoordinates::tf_crop_and_resize:
      return plan.out > 1 ? plan.roi_start * (length - 1) + out * (plan.roi_end - plan.roi_start) * (length - 1) /
                                                                (static_cast<double>(plan.out) - 1)
                          : 0.5 * (plan.roi_start + plan.roi_end) * (length - 1);
  }
  return (out + 0.5) / scale - 0.5;
}

int64_t nearest_index(ResampleRounding rounding, double x) {
  switch (rounding) {
    case ResampleRounding::round_prefer_floor: return saturated<int64_t>(std::ceil(x - 0.5));
    case ResampleRounding::round_prefer_ceil: return saturated<int64_t>(std::floor(x + 0.5));
    case ResampleRounding::floor: break;
    case ResampleRounding::ceil: return saturated<int64_t>(std::ceil(x));
  }
  return saturated<int64_t>(std::floor(x));
}

std::vector<ResampleTap> cubic_taps(const ResampleRule& rule, int64_t left, double t, int64_t size) {
  const double a = rule.cubic;
  const double w[] = {((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a, ((a + 2) * t - (a + 3)) * t * t + 1,
                      ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1,
                      ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a};
  std::vector<ResampleTap> taps;
  double total = 0;
  const bool exclude = rule.exclude_outside;
  for (int64_t k = 0; k < 4; ++k) {
    const int64_t index = left - 1 + k;
    if (exclude && (index < 0 || index >= size)) continue;
    taps.push_back({std::clamp<int64_t>(index, 0, size - 1), w[k]});
    total += w[k];
  }
  for (ResampleTap& tap : taps) tap.weight /= exclude ? total : 1;
  return taps;
}

/// The curve of mode "linear" or "cubic" at a distance from its middle.
double curve(const ResampleRule& rule, double distance) {
  const double d = std::abs(distance), a = rule.cubic;
  if (rule.mode == ResampleMode::linear) return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/// Against aliasing the curve is as wide as an output element, in input elements.
std::vector<ResampleTap> wide_taps(const AxisResampling& plan, const ResampleRule& rule, double x) {
  const double reach = (rule.mode == ResampleMode::linear ? 1 : 2) / plan.scale;
  std::vector<ResampleTap> taps;
  double total = 0;
  for (auto i = saturated<int64_t>(std::floor(x - reach)); i <= saturated<int64_t>(std::ceil(x + reach)); ++i) {
    const double weight = curve(rule, (static_cast<double>(i) - x) * plan.scale);
    if (weight == 0 || (rule.exclude_outside && (i < 0 || i >= plan.in))) continue;
    taps.push_back({std::clamp<int64_t>(i, 0, plan.in - 1), weight});
    total += weight;
  }
  for (ResampleTap& tap : taps) tap.weight /= total;
  return taps;
}

}  // namespace

std::vector<int64_t> resampled_axes(const Attrs& attrs, size_t rank) {
  if (attrs.has("axes") && !attrs.integers("axes").empty()) return attrs.integers("axes");
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

ResampleRule::ResampleRule(const Attrs& attrs)
    : mode(value_of<ResampleMode>(attrs, "mode")),
      coordinates(value_of<ResampleCoordinates>(attrs, "coordinate_transformation_mode")),
      cubic(attrs.real("cubic_coeff_a")),
      exclude_outside(attrs.integer("exclude_outside") != 0),
      antialias(attrs.integer("antialias") != 0) {
  if (mode == ResampleMode::nearest) rounding = value_of<ResampleRounding>(attrs, "nearest_mode");
}

bool is_identity(const AxisResampling& plan, const ResampleRule& rule) {
  return plan.out == plan.in && plan.scale == 1 && rule.coordinates != ResampleCoordinates::tf_crop_and_resize;
}

std::vector<ResampleTap> taps_of(const AxisResampling& plan, const ResampleRule& rule, int64_t out) {
  const double x = source_coordinate(plan, rule.coordinates, static_cast<double>(out));
  if (rule.coordinates == ResampleCoordinates::tf_crop_and_resize && (x < 0 || x > static_cast<double>(plan.in - 1)))
    return {};
  const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i, 0, plan.in - 1); };
  if (rule.mode == ResampleMode::nearest) return {{clamp(nearest_index(rule.rounding, x)), 1}};
  if (rule.antialias && plan.scale < 1) return wide_taps(plan, rule, x);
  const double base = std::floor(std::clamp(x, -1e15, 1e15)), t = x - base;
  const auto left = saturated<int64_t>(base);
  if (rule.mode == ResampleMode::linear) return {{clamp(left), 1 - t}, {clamp(left + 1), t}};
  return cubic_taps(rule, left, t, plan.in);
}

}  // namespace hone
