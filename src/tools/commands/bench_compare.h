// SPDX-License-Identifier: Apache-2.0
//
// `hone bench --compare`: engines that take turns, so that what disturbs the machine disturbs all of them.
#pragma once

#include "measured/paired.h"
#include "tools/common/friendly.h"

namespace hone {

struct ComparedEngine {
  std::string file;
  std::vector<double> rounds;  // median latency of each, ms
  double median = 0;           // of them
  PairedRatio to_first = {};   // of the first engine: 1
};

/// Each file is an engine; models are built first. `rounds` turns of all of them, --duration in all for each.
std::vector<ComparedEngine> compare_engines(const FriendlyLine& line, int rounds);

/// Latencies round by round, and the ratios with their bounds, as SVG.
std::string comparison_plot(const std::vector<ComparedEngine>& engines);

/// The whole tool: measures, prints text or JSON, and writes the plot where one is asked for.
int run_comparison_of_engines(const FriendlyLine& line);

}  // namespace hone
