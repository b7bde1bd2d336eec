// SPDX-License-Identifier: Apache-2.0
//
// Statistics in single precision, exactly as trtexec defines them, so that figures can be compared digit by digit.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "measured/times.h"

namespace hone {

float percentile(float p, std::span<const float> sorted) {
  if (sorted.empty()) return std::numeric_limits<float>::infinity();
  const auto count = static_cast<int>(sorted.size());
  const auto excluded = static_cast<int>((1 - p / 100) * static_cast<float>(count));
  return sorted[static_cast<size_t>(std::clamp(count - 1 - excluded, 0, count - 1))];
}

static float median(std::span<const float> sorted) {
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

static float coefficient_of_variance(std::span<const float> samples, float mean) {
  if (mean == 0) return std::numeric_limits<float>::infinity();
  float sum = 0;
  for (const float sample : samples) sum += (sample - mean) * (sample - mean);
  return std::sqrt(sum / static_cast<float>(samples.size())) / mean * 100;
}

Summary summarize(std::vector<float> samples, std::span<const float> percentiles) {
  Summary summary;
  summary.percentiles.assign(percentiles.size(), 0);
  if (samples.empty()) return summary;
  std::ranges::sort(samples);
  summary.min = samples.front();
  summary.max = samples.back();
  summary.mean = std::accumulate(samples.begin(), samples.end(), 0.0f) / static_cast<float>(samples.size());
  summary.median = median(samples);
  for (size_t i = 0; i < percentiles.size(); ++i) summary.percentiles[i] = percentile(percentiles[i], samples);
  summary.coefficient_of_variance = coefficient_of_variance(samples, summary.mean);
  return summary;
}

size_t warm_up_queries(std::span<const Trace> traces, float warm_up_ms) {
  const auto first =
      std::ranges::find_if(traces, [&](const Trace& trace) { return trace.compute_start >= warm_up_ms; });
  return static_cast<size_t>(first - traces.begin());
}

}  // namespace hone
