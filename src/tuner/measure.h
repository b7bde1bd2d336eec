// SPDX-License-Identifier: Apache-2.0
//
// Measuring candidates of one problem: each is compiled, loaded and launched exactly as the runtime will, checked against
// the reference evaluation, and timed in rotation with the others. The only impure step of a build.
#pragma once

#include <functional>
#include <span>

#include "tuner/candidate.h"
#include "tuner/load_ahead.h"
#include "tuner/timing_cache.h"

namespace hone {

struct MeasureOptions {
  int repeats = 8;             // samples per candidate
  double sample_ms = 0.3;      // short kernels are launched several times per sample
  double discard_ratio = 1.4;  // a candidate this much slower than the best so far is not sampled again
  double tolerance = 2e-5;     // relative error norm against the reference, f32
  /// Asked between launches; true ends the measuring as soon as one candidate has a time. Empty: never.
  std::function<bool()> stop = {};
};

/// Fills `timing` of every candidate: from `cache` where known, else measured and put there. What `ahead` has not loaded is loaded now.
void measure(const Problem& problem, std::span<Candidate> candidates, LoadAhead& ahead, Device& device,
             const MeasureOptions& options, TimingCache& cache);

}  // namespace hone
