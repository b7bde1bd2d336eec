// SPDX-License-Identifier: Apache-2.0
//
// build(): graph in, plan out. See build.cpp, which reads as the table of contents of the builder.
#pragma once

#include "builder/events/listener.h"
#include "builder/options.h"
#include "device/tactic.h"
#include "plan/plan.h"
#include "tuner/timing_cache.h"

namespace hone {

/// Builds for `device`. The graph may hold symbolic sizes; `options.profiles` says their ranges. Progress, times, choices and
/// memory are told to `listeners`. Throws Error listing every node that no source can run.
Plan build(Graph graph, const BuildOptions& options, const Backend& backend, Device& device, TimingCache& cache,
           const Listeners& listeners = {});

/// What the sources answer for one layer, nothing timed.
struct LayerOffers {
  std::string name;
  std::vector<std::string> origin;   // ONNX nodes
  bool is_view = false;              // nothing to compute
  bool host_only = false;            // only "host" and the reference are asked: objects, or a data-dependent shape
  std::vector<std::string> sources;  // that have a tactic for it; the reference only where no other has
  std::vector<Candidates::Refusal> refusals;
};

/// The layers that build() would make for the first profile.
std::vector<LayerOffers> survey(Graph graph, const BuildOptions& options, const Backend& backend, Device& device,
                                const Listeners& listeners = {});

}  // namespace hone
