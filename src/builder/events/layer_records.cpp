// SPDX-License-Identifier: Apache-2.0
#include "builder/events/layer_records.h"

#include "builder/tune.h"

namespace hone {
namespace {

LayerRecord record_of(const Layer& layer) {
  LayerRecord record{
      .layer = layer.region.name(),
      .candidates = {},
      .chosen = layer.chosen < 0 ? "view" : layer.candidates[static_cast<size_t>(layer.chosen)].tactic.text()};
  for (const Candidate& c : layer.candidates)
    record.candidates.push_back({c.tactic.text(), c.timing.ms, c.timing.spread, c.timing.note});
  for (const Candidates::Refusal& r : layer.refusals)
    record.candidates.push_back({r.tactic, -1, 0, "refused: " + r.reason});
  return record;
}

}  // namespace

void LayerRecords::tactics_chosen(const Choice& choice, double) {
  for (const Layer& layer : choice.layers) records_.push_back(record_of(layer));
}

}  // namespace hone
