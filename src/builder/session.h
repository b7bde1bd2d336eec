// SPDX-License-Identifier: Apache-2.0
//
// What one build works with: what it was given, and what follows from that before anything is tuned. Made once, read by all
// phases.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "builder/events/listener.h"
#include "builder/layers.h"
#include "builder/prepare/data_sizes.h"
#include "builder/prepare/gatings.h"
#include "builder/prepare/io_formats.h"
#include "ops/weight_codes.h"
#include "passes/pass.h"

namespace hone {

/// Shapes as the model declares them, for the plan's interface.
struct DeclaredShapes {
  std::vector<Shape> inputs, outputs;
};

/// The graph that regions are formed of, and what was noted before passes changed it.
struct PreparedGraph {
  Graph graph;
  size_t outputs = 0;  // those of the model; debug tensors follow
  DeclaredShapes declared;
  std::map<std::string, ValueRange> ranges;  // of inputs that do not take every value
  std::vector<ProfilePoints> profiles;
  std::vector<Folded> folded;
  std::optional<RefitPart> refit;  // when it was asked for
};

struct BuildSession {
  /// Runs the passes; all that is given by reference has to stay. Throws Error when shapes or formats do not fit the graph.
  BuildSession(Graph given, const BuildOptions& options, const Backend& backend, Device& device, TimingCache& cache,
               const Listeners& listeners);
  BuildSession(const BuildSession&) = delete;
  BuildSession& operator=(const BuildSession&) = delete;

  const double start_ms = now_ms();
  const KeptWeightCodes codes_of_weights;
  const BuildOptions& options;
  const Backend& backend;
  Device& device;
  TimingCache& cache;
  const size_t known_before;  // entries of the cache
  const Listeners listeners;

  PreparedGraph prepared;
  const Graph& graph;  // the prepared one
  const EdgeLayouts edges;
  const DataSizes sizes;
  const Gatings gatings;
  TimingCache used;  // receives the times that choices come from
};

/// Whether a build that began then has spent its budget, or was told to stop.
bool must_stop(const BuildOptions& options, double start_ms);

}  // namespace hone
