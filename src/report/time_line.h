// SPDX-License-Identifier: Apache-2.0
//
// What --trace writes: a measurement as a time line, in the trace-event format that Perfetto and Chromium open. Three runs stand one
// behind the other: queries as they were measured, layers one by one as the profile has them, and workers at their layers while an
// inference runs as it always does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measured/times.h"

namespace hone {

struct TimeLineLayer {
  std::string name, kind, tactic;
  std::vector<std::string> nodes;  // of the model
  int64_t flops = 0, bytes = 0;    // 0: not known
  int64_t activations = 0;         // bytes that are alive while it runs
};

/// Somebody at a layer, in ms from the start of the run.
struct TimeLineSlice {
  size_t layer = 0;
  int worker = 0;
  double begin = 0, end = 0;
};

class TimeLine {
 public:
  /// `gpu`: who computes are streams, not workers.
  explicit TimeLine(std::vector<TimeLineLayer> layers, bool gpu = false) : layers_(std::move(layers)), gpu_(gpu) {}

  void set_queries(std::span<const Trace> queries) { queries_.assign(queries.begin(), queries.end()); }
  /// A layer of the profiled run has taken so long: of several that are called so, the next in the order.
  void layer(std::string_view name, double milliseconds);
  /// The profiled run is over; its queries say when its inferences began, where they are as many.
  void end_layers(std::span<const Trace> queries);
  /// An inference of the last run, from its beginning.
  void inference(std::vector<TimeLineSlice> spans) { inferences_.push_back(std::move(spans)); }
  void end_inferences(std::span<const Trace> queries);
  /// Of that name; the number of layers where there is none.
  size_t index_of(std::string_view name) const;

  std::string json() const;

 private:
  std::vector<TimeLineLayer> layers_;
  bool gpu_;
  std::vector<Trace> queries_;
  std::vector<std::vector<TimeLineSlice>> profiled_, inferences_;  // by inference
  size_t next_ = 0;                                                // layer of the profiled run
};

}  // namespace hone
