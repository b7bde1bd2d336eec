// SPDX-License-Identifier: Apache-2.0
//
// What a figure is worth: latency of one query at a time beside the throughput of many, what bounds them, how steady they
// were, and what else went on in the machine.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "measured/machine.h"
#include "measured/times.h"

namespace hone {

struct Circumstances {
  std::vector<float>
      closed_loop;  // ms from the first byte of a query's inputs to the last of its outputs, one at a time
  MachineChange machine;
};

/// Distance between the quartiles, in percent of the median.
float quartile_spread(std::vector<float> samples);
/// Whether the spread of the compute time is small enough to compare figures.
bool is_steady(std::span<const Trace> timed);

/// Times from the start to the end of each query.
std::vector<float> round_trips(std::span<const Trace> timed);

/// "compute (96 % of the wall time; input copies 2 %, output copies 1 %, host 1 %)": the busiest first. An asynchronous device is
/// fed by enqueueing, which is a resource of its own there; several streams may use one for more than the wall time.
std::string bound_by(std::span<const Trace> timed, bool synchronous_stream);

/// Lines for the summary, each "key: value".
std::vector<std::string> circumstance_lines(std::span<const Trace> timed, const Circumstances& circumstances,
                                            bool synchronous_stream);
/// What --exportMachine writes.
std::string machine_json(std::span<const Trace> timed, const Circumstances& circumstances);

}  // namespace hone
