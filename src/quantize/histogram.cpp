// SPDX-License-Identifier: Apache-2.0
#include "quantize/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace hone {
namespace {

/// The least width: its inverse is finite.
constexpr double kLeastWidth = std::numeric_limits<float>::min();

}  // namespace

float Histogram::magnitude() const { return std::max(std::fabs(min_), std::fabs(max_)); }

/// Doubles the bins' width until the magnitude has one: pairs of bins become one, so every count stays where it belongs.
void Histogram::make_room(float magnitude) {
  if (width_ == 0) {
    if (magnitude == 0) return;
    width_ = std::max(kLeastWidth, static_cast<double>(magnitude) / kBins);
    return;
  }
  while (magnitude > width_ * kBins) {
    for (size_t i = 0; i < kBins / 2; ++i) bins_[i] = bins_[2 * i] + bins_[2 * i + 1];
    std::fill(bins_.begin() + kBins / 2, bins_.end(), 0);
    width_ *= 2;
  }
}

void Histogram::add(std::span<const float> values) {
  if (values.empty()) return;
  float low = values[0], high = values[0];
  bool finite = true;
  for (const float value : values) {
    finite &= std::isfinite(value);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  HONE_CHECK(finite, "a value is not finite");
  min_ = count_ == 0 ? low : std::min(min_, low);
  max_ = count_ == 0 ? high : std::max(max_, high);
  count_ += values.size();
  make_room(magnitude());
  const auto per_width = static_cast<float>(width_ == 0 ? 0 : 1 / width_);
  for (const float value : values) {
    const auto bin = static_cast<size_t>(std::fabs(value) * per_width);
    ++bins_[std::min(bin, kBins - 1)];
  }
}

}  // namespace hone
