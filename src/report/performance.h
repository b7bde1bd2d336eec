// SPDX-License-Identifier: Apache-2.0
//
// The report of a measurement: how many queries, trace averages, summary, hints, and what the figures mean; and the
// times of all queries as JSON.
#pragma once

#include <span>
#include <string>

#include "base/log.h"
#include "measured/times.h"
#include "perf/options.h"
#include "report/circumstances.h"

namespace hone {

/// What a report has to know besides the times.
struct PerformanceContext {
  /// Enqueueing returns when the work is done: then it cannot be a bottleneck of its own.
  bool synchronous_stream = false;
  float unstable_percent = 1.0f;                 // coefficient of variance that is worth a hint
  const Circumstances* circumstances = nullptr;  // told in the summary when known
};

/// `traces` with warm-up, sorted.
void report_performance(std::span<const Trace> traces, const PerfOptions& options, const PerformanceContext& context,
                        const Logger& log);
/// What --exportTimes writes, of the timed queries.
std::string times_json(std::span<const Trace> timed);

}  // namespace hone
