// SPDX-License-Identifier: Apache-2.0
//
// The builder's table of contents.
#include "builder/build.h"

#include <algorithm>

#include "builder/events/layer_records.h"
#include "builder/header.h"
#include "builder/lower.h"
#include "builder/tune.h"

namespace hone {
namespace {

/// The times that its choices came from make the same plan of other weights.
void keep_times(BuildSession& session, Plan& plan) {
  if (!session.prepared.refit) return;
  plan.refit = std::move(session.prepared.refit);
  plan.refit->timings = session.used.text();
}

CacheUse cache_use(const BuildSession& session) {
  const TimingCache& cache = session.cache;
  return {.entries = cache.entries(), .added = cache.entries() - session.known_before, .hits = cache.hits()};
}

LayerOffers offers_of(const Layer& layer, const DataSizes& sizes) {
  LayerOffers offers{.name = layer.region.name(),
                     .origin = layer.region.origin(),
                     .is_view = layer.region.is_view,
                     .host_only = !layer.region.is_view && sizes.host_only(layer.region),
                     .sources = {},
                     .refusals = layer.refusals};
  for (const Candidate& candidate : layer.candidates)
    if (std::ranges::find(offers.sources, candidate.tactic.source) == offers.sources.end())
      offers.sources.push_back(candidate.tactic.source);
  return offers;
}

}  // namespace

Plan build(Graph given, const BuildOptions& options, const Backend& backend, Device& device, TimingCache& cache,
           const Listeners& listeners) {
  // Shapes, formats and debug tensors as asked for, then the passes.
  LayerRecords records;
  BuildSession session(std::move(given), options, backend, device, cache, listeners.with(&records));

  // From here on no operator is created or removed; nodes are only grouped, once per shape profile.
  Plan plan = plan_header(session);
  PlanAssets assets(plan, session.graph);
  session.listeners.tell(&BuildListener::tuning_begun, !options.timing_cache_file.empty());
  for (const ProfilePoints& points : session.prepared.profiles) {
    session.listeners.tell(&BuildListener::profile_begun, plan.profiles.size(), session.prepared.profiles.size());

    // Ask every source; measure what the cache does not know.
    std::vector<Layer> layers = make_layers(session, points);

    // Choose tactics and layouts together, then write down steps and buffers.
    const Choice choice = choose(session, points, std::move(layers));
    plan.profiles.push_back(lower(session, points, choice, assets));
  }

  // What reports, refits and checks ask of a plan.
  plan.log = records.take();
  keep_times(session, plan);
  note_shape_nodes(session.graph, plan);
  session.listeners.tell(&BuildListener::finished, plan, cache_use(session), seconds_since(session.start_ms));
  verify(plan);
  return plan;
}

std::vector<LayerOffers> survey(Graph given, const BuildOptions& asked, const Backend& backend, Device& device,
                                const Listeners& listeners) {
  BuildOptions options = asked;
  options.optimization_level = 0;  // nothing is timed
  TimingCache cache;
  BuildSession session(std::move(given), options, backend, device, cache, listeners);
  std::vector<LayerOffers> result;
  for (const Layer& layer : make_layers(session, session.prepared.profiles.front()))
    result.push_back(offers_of(layer, session.sizes));
  return result;
}

}  // namespace hone
