// SPDX-License-Identifier: Apache-2.0
//
// Where a quantised tensor is cut off: the more outliers are clipped, the finer are the steps for all the others.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "quantize/histogram.h"

namespace hone {

/// minmax clips nothing. entropy takes the cut whose distribution of quantised values says most of the real one (the least
/// Kullback-Leibler divergence), percentile the magnitude below which so many values lie, mse the least mean squared error.
enum class ClippingMethod { minmax, entropy, percentile, mse };

struct Clipping {
  ClippingMethod method = ClippingMethod::entropy;
  double percentile = 99.99;  // of percentile alone, in (0, 100]
};

/// "entropy", "minmax" (also "max"), "mse", "percentile", "percentile=99.9"; nothing for other texts.
std::optional<Clipping> parse_clipping(std::string_view text);
std::string text_of(const Clipping& clipping);

/// The magnitude to which values are clipped when they are quantised to `steps` steps on either side of zero; at most that of the
/// histogram. 0 when all values are 0.
float clip_magnitude(const Histogram& histogram, const Clipping& clipping, int steps = 127);

/// The share of the values that are beyond a magnitude, as far as the bins tell.
double share_beyond(const Histogram& histogram, double magnitude);

}  // namespace hone
