// SPDX-License-Identifier: Apache-2.0
//
// What is known of measured queries: their stamps, and statistics over them. Times in ms on one clock whose origin is the start of
// the run.
#pragma once

#include <span>
#include <vector>

namespace hone {

struct Trace {
  float enqueue_start = 0, enqueue_end = 0;  // host clock
  float h2d_start = 0, h2d_end = 0, compute_start = 0, compute_end = 0, d2h_start = 0, d2h_end = 0;
  float h2d() const { return h2d_end - h2d_start; }
  float compute() const { return compute_end - compute_start; }
  float d2h() const { return d2h_end - d2h_start; }
  float latency() const { return h2d() + compute() + d2h(); }
  float enqueue() const { return enqueue_end - enqueue_start; }
};

/// How many of the sorted traces belong to the warm-up: all before the first that starts computing after it.
size_t warm_up_queries(std::span<const Trace> traces, float warm_up_ms);

/// Sorted sample statistics exactly as trtexec defines them (single precision, index rule without interpolation).
struct Summary {
  float min = 0, max = 0, mean = 0, median = 0;
  std::vector<float> percentiles;     // in the order asked for
  float coefficient_of_variance = 0;  // percent
};
float percentile(float p, std::span<const float> sorted);
Summary summarize(std::vector<float> samples, std::span<const float> percentiles);

}  // namespace hone
