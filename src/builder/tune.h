// SPDX-License-Identifier: Apache-2.0
//
// From regions to layers with timed candidates, and from there to the choice of tactics, layouts and reformats.
#pragma once

#include <map>
#include <tuple>

#include "base/log.h"
#include "builder/data_sizes.h"
#include "builder/io_formats.h"
#include "builder/layers.h"

namespace hone {

/// What tuning works with.
struct TuneContext {
  const Graph& graph;
  size_t outputs;  // of the network: the graph's others are debug tensors
  const EdgeLayouts& edges;
  const DataSizes& sizes;
  const ProfilePoints& points;
  const BuildOptions& options;
  const Backend& backend;
  Device& device;
  TimingCache& cache;
  TimingCache& used;  // receives the times that choices come from
  const Logger& log;
  double start_ms = 0;  // when the build began, for its budget
};

/// A value brought into another layout: one more layer of the engine.
struct ReformatLayer {
  std::unique_ptr<Problem> problem;
  Candidate candidate;
};
using ReformatKey = std::tuple<const Value*, Layout, Layout>;  // value, from, to

struct Choice {
  std::vector<Layer> layers;                       // `chosen` filled in
  std::map<ReformatKey, ReformatLayer> reformats;  // those that the choice may need
};

/// Whether two layouts coincide for every value of the symbols.
bool always_same_bytes(const Shape& shape, Layout a, Layout b);
/// Asks every source, splits what nobody wants, times what the cache does not know: the layers that move most bytes first,
/// because a build may be told to stop; then the rule of level 0 serves for the rest.
std::vector<Layer> make_layers(const TuneContext& context);
/// Times the reformats that could be needed, then chooses.
Choice choose(std::vector<Layer> layers, const TuneContext& context);

}  // namespace hone
