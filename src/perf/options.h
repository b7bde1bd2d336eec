// SPDX-License-Identifier: Apache-2.0
//
// What a user may ask of a measurement.
#pragma once

#include <string>
#include <vector>

namespace hone {

struct PerfOptions {
  int iterations = 10;  // at least this many turns after warm-up
  double warm_up_ms = 200;
  double duration_s = 3;  // at least this long after warm-up; -1: endless
  double sleep_ms = 0, idle_ms = 0;
  int streams = 1;
  bool threads = false;  // one host thread per stream
  bool data_transfers = true;
  bool spin_wait = false;
  bool use_graph = false;
  bool expose_dma = false;
  int average_runs = 10;
  std::vector<float> percentiles{90, 95, 99};
};

}  // namespace hone
